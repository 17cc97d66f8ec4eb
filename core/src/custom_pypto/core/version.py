"""The version of core."""

from __future__ import annotations

from custom_pypto_discovery.host import CORE, installed_version

__version__ = installed_version(CORE) or "0+unknown"
"""The version of the installed custom-pypto-core; ``0+unknown`` when that cannot be read."""

"""The version of core."""

from __future__ import annotations

from custom_pypto_discovery import distributions
from custom_pypto_discovery.host import CORE

__version__ = distributions.version(CORE) or "0+unknown"
"""The version of the installed custom-pypto-core; ``0+unknown`` when that cannot be read."""

"""The build backend of custom_pypto plugins (PEP 517 and PEP 660).

A plugin names it in its pyproject.toml and is described by ``[tool.custom-pypto]`` there; see
docs/building.md. The wheel holds the plugin's package with its library, compiled for PyTorch's
stable ABI, and its manifest. This process imports neither torch nor any plugin.
"""

from __future__ import annotations

import os
from importlib import metadata
from typing import Any

from custom_pypto_contract import variables

SETUPTOOLS = 77
"""The oldest major version of setuptools that builds plugins."""

_HOOKS = (
    "build_editable",
    "prepare_metadata_for_build_editable",
    "build_wheel",
    "prepare_metadata_for_build_wheel",
    "build_sdist",
)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what a wheel for other systems needs beside the requirements of this package."""
    return ["ziglang"] if os.environ.get(variables.PLATFORM) else []


get_requires_for_build_editable = get_requires_for_build_wheel


def __getattr__(name: str) -> Any:
    """Return a hook: it is setuptools' own, on a plugin.

    Front ends install what builds need as requirements of this package; torch is none of them: its
    headers are found on disk.
    """
    if name not in _HOOKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = next(iter(metadata.distributions(name="setuptools")), None)
    if found is None or int(found.version.split(".")[0]) < SETUPTOOLS:
        raise SystemExit(
            f"error: building a plugin needs setuptools>={SETUPTOOLS}; install it, or build without"
            " --no-build-isolation"
        )
    # Imported here: the commands do not need setuptools.
    from .setuptools_backend import PluginBackend

    return getattr(PluginBackend(), name)

"""The build backend of custom_pypto plugins (PEP 517 and PEP 660).

A plugin names it in its pyproject.toml and is described by ``[tool.custom-pypto]`` there; see
docs/building.md. The wheel holds the plugin's package with its library, compiled for PyTorch's
stable ABI, and its manifest. This process imports neither torch nor any plugin.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from custom_pypto_contract import variables

from .ninja import find_ninja

_HOOKS = (
    *("build_editable", "prepare_metadata_for_build_editable"),
    *("build_wheel", "prepare_metadata_for_build_wheel"),
    "build_sdist",
)


def __getattr__(name: str) -> Any:
    """Return a hook that builds: it is setuptools' own, on a plugin."""
    if name not in _HOOKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported here: the commands do not need setuptools.
    from .setuptools_backend import PluginBackend

    return getattr(PluginBackend(), name)


def get_requires_for_build_wheel(
    config_settings: Mapping[str, str | list[str]] | None = None,
) -> list[str]:
    """Return what `build_wheel` needs and lacks; not torch: its headers are found on disk."""
    needs: list[str] = []
    if not _compiles():
        return needs
    if not find_ninja():
        needs.append("ninja")
    if os.environ.get(variables.PLATFORM) and not find_spec("ziglang"):
        needs.append("ziglang")
    return needs


get_requires_for_build_editable = get_requires_for_build_wheel


def _compiles() -> bool:
    """Whether the project in the current folder has C++ sources; True where that cannot be read."""
    from custom_pypto_contract.tables import TableError

    from .errors import BuildError
    from .settings import read_toml, subtable

    try:
        document = read_toml(Path.cwd() / "pyproject.toml")
        return "sources" in subtable(document, "tool", "custom-pypto")
    except (BuildError, TableError):
        return True

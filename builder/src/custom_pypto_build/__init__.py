"""The build backend of custom_pypto plugins (PEP 517 and PEP 660).

A plugin names it in its pyproject.toml and is described by ``[tool.custom-pypto]`` there; see
docs/building.md. The wheel holds the plugin's package with its library, compiled for PyTorch's
stable ABI, and its manifest. This process imports neither torch nor any plugin.

setuptools is imported by the hooks alone: the commands do not need it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from custom_pypto_contract import variables

from .ninja import find_ninja

if TYPE_CHECKING:
    from .setuptools_backend import PluginBackend

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ConfigSettings = Mapping[str, str | list[str]]


def get_requires_for_build_wheel(config_settings: ConfigSettings | None = None) -> list[str]:
    """Return what `build_wheel` needs and lacks; not torch: its headers are found on disk."""
    needs: list[str] = []
    if not _compiles():
        return needs
    if not find_ninja():
        needs.append("ninja")
    if os.environ.get(variables.PLATFORM) and not find_spec("ziglang"):
        needs.append("ziglang")
    return needs


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: ConfigSettings | None = None
) -> str:
    """Write the ``.dist-info`` folder without compiling; gives the folder's name."""
    return _backend().prepare_metadata_for_build_wheel(metadata_directory, config_settings)


# The same hooks of PEP 660.
get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(
    wheel_directory: str,
    config_settings: ConfigSettings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel ``py3-none-<platform>``; gives its file name."""
    return _backend().build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: ConfigSettings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the plugin into its source tree, and a wheel that points there; gives its name."""
    return _backend().build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: ConfigSettings | None = None) -> str:
    """Pack the sources, headers and the opp folder; gives the archive's name."""
    return _backend().build_sdist(sdist_directory, config_settings)


def _backend() -> PluginBackend:
    from .setuptools_backend import PluginBackend

    return PluginBackend()


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

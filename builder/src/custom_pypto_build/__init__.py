"""The build backend of custom_pypto plugins (PEP 517 and PEP 660).

A plugin names it in its pyproject.toml and is described by ``[tool.custom-pypto]`` there; see
docs/building.md. The wheel holds the plugin's package with its library, compiled for PyTorch's
stable ABI, and its manifest. This process imports neither torch nor any plugin.
"""

from __future__ import annotations

from typing import Any

_HOOKS = (
    "build_editable",
    "prepare_metadata_for_build_editable",
    "build_wheel",
    "prepare_metadata_for_build_wheel",
    "build_sdist",
)


def __getattr__(name: str) -> Any:
    """Return a hook: it is setuptools' own, on a plugin.

    Front ends install what builds need as requirements of this package; torch is none of them: its
    headers are found on disk.
    """
    if name not in _HOOKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported here: the commands do not need setuptools.
    from .setuptools_backend import PluginBackend

    return getattr(PluginBackend(), name)

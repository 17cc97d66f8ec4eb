"""Finds custom_pypto_build, the build backend of plugins, and hands every hook over to it.

It is found in this repository, else among the installed packages; failing both, the build tool is
asked to install custom-pypto-core. pip hides the installed packages from an isolated build, but
sysconfig still says where they are: so core is not downloaded again for each build, nor torch.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# In plugins/ alone: pip unpacks a source distribution two folders below /tmp, where everybody may
# put a core/src.
_REPOSITORY = (
    [str(_HERE.parent.parent / "builder" / "src")] if _HERE.parent.name == "plugins" else []
)
_PLACES = [
    *_REPOSITORY,
    *sys.path,
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
]


def _load(name: str) -> bool:
    spec = importlib.machinery.PathFinder.find_spec(name, _PLACES)
    if spec is None or spec.loader is None:
        return importlib.util.find_spec(name) is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return True


if _load("custom_pypto_contract") and _load("custom_pypto_build"):
    from custom_pypto_build import *  # noqa: F403
else:
    _Settings = Mapping[str, str | list[str]] | None

    def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
        """What must be installed before the other hooks can work: core."""
        return ["custom-pypto-core>=0.1"]

    get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel

    def build_wheel(
        wheel_directory: str,
        config_settings: _Settings = None,
        metadata_directory: str | None = None,
    ) -> str:
        """Refuse: reached only when the build tool installs no build requirements."""
        raise SystemExit(
            "error: custom-pypto-core is not installed; run `pip install custom-pypto-core` first,"
            " or build without --no-build-isolation"
        )

    build_editable = build_wheel

    def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
        """Refuse, as `build_wheel` does."""
        return build_wheel(sdist_directory)

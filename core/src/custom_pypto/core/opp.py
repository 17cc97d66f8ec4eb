"""Makes the opp packages (kernels for NPUs) in plugins' wheels known to CANN.

A plugin's own kernels find them anyway. CANN's graph engine, and other software on the machine,
search ASCEND_CUSTOM_OPP_PATH, which CANN reads when torch_npu initialises the NPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "ASCEND_CUSTOM_OPP_PATH"


def find_packages(opp: Path) -> tuple[Path, ...]:
    """Return the opp packages in the folder `opp` of a wheel: itself, or those in its vendors/."""
    vendors = opp / "vendors"
    if not vendors.is_dir():
        return (opp,) if opp.is_dir() else ()
    return tuple(sorted(folder for folder in vendors.iterdir() if folder.is_dir()))


def announce(found: Iterable[Path]) -> tuple[Path, ...]:
    """Put new packages before those in ASCEND_CUSTOM_OPP_PATH; return the new ones."""
    named = _entries()
    new = tuple(package for package in found if str(package) not in named)
    if new:
        os.environ[VARIABLE] = os.pathsep.join([*map(str, new), *named])
    return new


def withdraw(found: Iterable[Path]) -> None:
    """Remove the packages that `announce` returned."""
    gone = {str(package) for package in found}
    kept = [entry for entry in _entries() if entry not in gone]
    if kept:
        os.environ[VARIABLE] = os.pathsep.join(kept)
    else:
        os.environ.pop(VARIABLE, None)


def _entries() -> list[str]:
    return [entry for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry]

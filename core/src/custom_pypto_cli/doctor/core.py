"""custom-pypto-core itself: whether the package that Python would import is the one installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_discovery import distributions
from custom_pypto_discovery.host import CORE

from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check

PACKAGE = "custom_pypto"


def checks(context: DoctorContext) -> Iterator[Check]:
    """Look at core's metadata and at who hides its package; runs nothing."""
    del context
    version = distributions.version(CORE)
    check = Check(CORE, version or "no metadata")
    if version is None:
        check = check.with_problem(f"{CORE} runs here but is not installed", f"install {CORE}")
    elif not version:
        check = check.with_problem(f"the metadata of {CORE} cannot be read", f"reinstall {CORE}")
    yield check
    expected = Path(__file__).resolve().parents[2] / PACKAGE / "__init__.py"
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError) as error:
        yield Check(PACKAGE, f"cannot be looked up: {error}").with_problem(
            f"looking for {PACKAGE} failed: {error}", f"reinstall {CORE}"
        )
        return
    found = None if spec is None else spec.origin or str(spec.submodule_search_locations)
    if found is not None and Path(found).resolve() == expected:
        yield Check(PACKAGE, str(expected.parent))
    elif found is None or not expected.is_file():
        yield Check(PACKAGE, "not found").with_problem(
            f"{PACKAGE} is not complete in {expected.parent}", f"reinstall {CORE}"
        )
    else:
        yield Check(PACKAGE, found).with_problem(
            f"`import {PACKAGE}` finds {found}, which hides core's own package {expected.parent}",
            "rename or remove it, or start Python in another folder",
        )

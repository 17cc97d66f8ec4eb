"""custom-pypto-core itself: whether the package that Python would import is the one installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from custom_pypto_discovery import distributions
from custom_pypto_discovery.host import CORE
from custom_pypto_discovery.installed_plugin import normalize_name

from custom_pypto_cli import distribution
from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial

PACKAGE = "custom_pypto"
_MOST_RECORD = 64 << 20
REINSTALL = f"pip install --force-reinstall --no-deps {CORE}"


def probes(trial: Trial) -> Iterator[Probe]:
    """Look at core's metadata and at who else claims its package; runs nothing."""
    del trial
    version = distribution.version(CORE)
    probe = Probe(CORE, version or "no metadata")
    if version is None:
        probe = probe.with_problem(
            f"{CORE} runs here but is not installed",
            f"pip install {CORE}",
        )
    elif version == distribution.UNREADABLE:
        probe = probe.with_problem(f"the metadata of {CORE} cannot be read", REINSTALL)
    yield probe
    yield _package()
    yield from _intruders()


def _package() -> Probe:
    expected = Path(__file__).resolve().parents[2] / PACKAGE
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError) as error:
        return Probe(PACKAGE, f"cannot be looked up: {error}").with_problem(
            f"looking for {PACKAGE} failed: {error}", REINSTALL
        )
    if spec is None:
        return Probe(PACKAGE, "not found").with_problem(
            f"{PACKAGE} is not found in {expected}", REINSTALL
        )
    found = Path(spec.origin).resolve() if spec.origin else None
    if found == expected / "__init__.py":
        return Probe(PACKAGE, str(expected))
    if not (expected / "__init__.py").is_file():
        return Probe(PACKAGE, f"incomplete: {expected}").with_problem(
            f"core's package {expected} has no __init__.py", REINSTALL
        )
    where = str(found) if found else f"the folders {list(spec.submodule_search_locations or [])}"
    return Probe(PACKAGE, where).with_problem(
        f"`import {PACKAGE}` finds {where}, which hides core's own package {expected}",
        "rename or remove it, or start Python in another folder",
    )


def _intruders() -> Iterator[Probe]:
    """Report other distributions that ship files into core's package, which pip allows."""
    for other in distributions.installed():
        try:
            files = _files(other)
            name = distributions.read_headers(other).get("name") or "a distribution without a name"
        except Exception as error:
            # Broken metadata is a finding.
            place = distributions.location(other) or "an unknown place"
            yield Probe("metadata", str(place)).with_note(
                f"the metadata of a distribution cannot be read: {type(error).__name__}: {error}",
                "reinstall that distribution, or remove what is left of it",
            )
            continue
        intruding = [file for file in files if file.startswith(f"{PACKAGE}/")]
        if intruding and normalize_name(name) != CORE:
            yield Probe("intruder", f"{name}: {', '.join(intruding[:3])}").with_problem(
                f"{name} ships files into the package {PACKAGE}, which is core's own",
                f"pip uninstall {name}, then reinstall {CORE}; a plugin ships a package of its own",
            )


def _files(distribution: metadata.Distribution) -> list[str]:
    """Return the files of a distribution, relative to where it is installed."""
    text = distributions.read(distribution, "RECORD", _MOST_RECORD)
    return [line.removeprefix('"').partition(",")[0] for line in text.splitlines()]

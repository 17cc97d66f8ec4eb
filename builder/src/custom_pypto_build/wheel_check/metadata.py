"""The metadata of a wheel: name, version, entry point, requirements, licence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from custom_pypto_cli.report import Check
from custom_pypto_contract.manifest import GROUP, is_plugin_name
from custom_pypto_discovery.host import CORE
from custom_pypto_discovery.installed_plugin import normalize_name

from custom_pypto_build.wheel_check.contents import BUILD_AGAIN, shorten_list
from custom_pypto_build.wheel_check.plugin_wheel import PluginWheel


def probes(wheel: PluginWheel) -> Iterator[Check]:
    """Look at the folder of metadata."""
    yield _identity(wheel)
    yield _entry_point(wheel)
    yield _requirements(wheel)
    yield _licence(wheel)


def _identity(wheel: PluginWheel) -> Check:
    name, version = wheel.headers.get("Name", ""), wheel.headers.get("Version", "")
    probe = Check("distribution", f"{name} {version}".strip() or "unknown")
    if not name or not version:
        return probe.with_problem("METADATA gives no name or no version", BUILD_AGAIN)
    folder, _, folder_version = wheel.dist_info.removesuffix(".dist-info").partition("-")
    given = {
        "its file name": (wheel.file.distribution, wheel.file.version),
        f"the folder {wheel.dist_info}": (folder, folder_version),
    }
    for place, (other, other_version) in given.items():
        if (normalize_name(other), other_version) != (normalize_name(name), version):
            return probe.with_problem(
                f"METADATA says {name} {version}, {place} says {other} {other_version}",
                BUILD_AGAIN,
            )
    return probe


def _entry_point(wheel: PluginWheel) -> Check:
    shown = ", ".join(f"{name} = {value}" for name, value in wheel.entry_points) or "none"
    probe = Check("entry point", shown)
    if len(wheel.entry_points) != 1:
        return probe.with_problem(
            f"the wheel has {len(wheel.entry_points)} entry points in the group {GROUP!r}; it must"
            " have one",
            f'write [project.entry-points."{GROUP}"] in pyproject.toml',
        )
    [(name, module)] = wheel.entry_points
    if not is_plugin_name(name):
        return probe.with_problem(
            f"{name!r} cannot name a plugin", "use lower case letters, digits and '_'"
        )
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return probe.with_problem(
            f"{module!r} is no module", "name the plugin's package, without ':' and a function"
        )
    inner = "/".join(parts)
    if not {f"{inner}.py", f"{inner}/__init__.py"}.intersection(wheel.file.files):
        return probe.with_problem(
            f"the wheel does not hold the module {module!r}", "correct the entry point"
        )
    return probe


def _requirements(wheel: PluginWheel) -> Check:
    needed = wheel.headers.get_all("Requires-Dist", [])
    probe = Check("requires", ", ".join(needed) or "nothing")
    names = {normalize_name(name[0]) for each in needed if (name := re.match(r"[\w.-]+", each))}
    if CORE not in names:
        return probe.with_problem(
            f"the wheel does not require {CORE}, without which its ops cannot be found",
            f'add it in pyproject.toml: dependencies = ["{CORE}"]',
        )
    return probe


def _licence(wheel: PluginWheel) -> Check:
    expression = wheel.headers.get("License-Expression", "") or wheel.headers.get("License", "")
    files = wheel.headers.get_all("License-File", [])
    shown = filter(None, [expression.partition("\n")[0], *files])
    probe = Check("licence", ", ".join(shown) or "none")
    missing = [
        name
        for name in files
        if not {f"{wheel.dist_info}/licenses/{name}", f"{wheel.dist_info}/{name}"}.intersection(
            wheel.file.files
        )
    ]
    if missing:
        return probe.with_problem(f"the wheel has no {shorten_list(missing)}", BUILD_AGAIN)
    if not expression:
        return probe.with_note(
            "METADATA names no licence, so nobody knows what they may do with the wheel",
            'write license = "..." in pyproject.toml, an SPDX expression such as "Apache-2.0"',
        )
    if not files:
        return probe.with_note(
            "the wheel holds no text of its licence", "put a file LICENSE beside pyproject.toml"
        )
    return probe

"""The files of a wheel: that they are those of RECORD, and in the plugin's own package."""

from __future__ import annotations

import base64
import csv
from collections.abc import Iterator

from custom_pypto_cli.report import Check

from custom_pypto_build.wheel_check.plugin_wheel import PluginWheel

BUILD_AGAIN = "build the wheel again, and change nothing in it afterwards"
# A file of another distribution in one of these breaks it.
_CORES = {
    "custom_pypto",
    "custom_pypto_blocks",
    "custom_pypto_build",
    "custom_pypto_cli",
    "custom_pypto_contract",
    "custom_pypto_discovery",
    "custom_pypto_plugin",
    "custom_pypto_testing",
}
_MOST_SHOWN = 3


def probes(wheel: PluginWheel) -> Iterator[Check]:
    """Compare the files with RECORD, and look where they are."""
    file = wheel.file
    yield Check("wheel", f"{file.path.name}, {len(file.files)} files, {file.size} bytes")
    if file.unsafe:
        yield Check("paths", f"{len(file.unsafe)} unsafe").with_problem(
            f"the wheel holds what an installer must not unpack: {shorten_list(file.unsafe)}",
            BUILD_AGAIN,
        )
    yield _record(wheel)
    yield _packages(wheel)


def shorten_list(texts: list[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = len(texts) - _MOST_SHOWN
    return ", ".join(texts[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _record(wheel: PluginWheel) -> Check:
    files = wheel.file.files
    record = f"{wheel.dist_info}/RECORD"
    try:
        rows = [row for row in csv.reader(wheel.record.splitlines()) if len(row) == 3]
    except csv.Error as error:
        return Check("RECORD", "not readable").with_problem(f"RECORD: {error}", BUILD_AGAIN)
    listed = {name: digest for name, digest, _ in rows}
    unlisted = [name for name in files if name not in listed]
    changed = [
        name
        for name, given in listed.items()
        if name != record and (name not in files or given != _as_record(files[name]))
    ]
    probe = Check("RECORD", f"{len(listed)} files")
    if unlisted:
        return probe.with_problem(f"RECORD does not list {shorten_list(unlisted)}", BUILD_AGAIN)
    if changed:
        return probe.with_problem(
            f"RECORD has another SHA-256 for {shorten_list(changed)}, or the file is missing",
            BUILD_AGAIN,
        )
    return probe


def _as_record(sha256: str) -> str:
    digest = base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode("ascii").rstrip("=")
    return f"sha256={digest}"


def _packages(wheel: PluginWheel) -> Check:
    tops = set(map(_top, wheel.file.files)) - {wheel.dist_info}
    probe = Check("packages", ", ".join(sorted(tops)) or "none")
    taken = sorted(tops.intersection(_CORES))
    if taken:
        return probe.with_problem(
            f"the wheel has files in {', '.join(taken)}, a package of custom_pypto itself",
            "put them into the plugin's own package",
        )
    others = sorted(tops - {wheel.package})
    if others and wheel.package:
        return probe.with_note(
            f"besides the plugin's package {wheel.package} the wheel installs"
            f" {shorten_list(others)}",
            "keep only what its users need; tests and docs are for the source distribution",
        )
    return probe


def _top(name: str) -> str:
    """Return the name in site-packages that holds the file `name` after it is installed."""
    first, *inner = name.split("/")
    # An installer moves these two into site-packages.
    is_moved = first.endswith(".data") and inner and inner[0] in {"purelib", "platlib"}
    return inner[1] if is_moved and len(inner) > 1 else first

"""A program with the arguments <plugin> <distribution> <opp>: can core load it?

`import_check` runs this file by its path: where pip isolates the build, the Python that has core
lacks custom_pypto_build. The current folder has the plugin installed, without the folder `opp` of
its opp packages ('' if it has none). It prints one JSON object:
``{"refused": why}``, ``{"skipped": why}`` when that cannot be checked here, or ``{"kernels":
{op: keys}}`` with the dispatch keys of devices for which each op has a kernel.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_contract import variables
from custom_pypto_contract.aclnn_launch import REMEDY
from custom_pypto_contract.dispatch_keys import DEVICE_KEYS
from custom_pypto_contract.manifest import GROUP, OPP_LIBRARY

# torch's first import may take long on a machine that is busy building.
TIME_LIMIT = 300.0


def main(plugin: str, distribution: str, opp: str) -> None:
    """Print what becomes of `plugin` of `distribution` when core is imported."""
    # A lock file allows installed plugins alone, and this one is not installed yet.
    os.environ.pop(variables.LOCKFILE, None)
    outcome = subprocess_call.run(
        "import runpy\n"
        f"report(runpy.run_path({__file__!r})['report']({plugin!r}, {distribution!r}, {opp!r}))",
        time_limit=TIME_LIMIT,
        environment={
            variables.PLUGINS: plugin,
            variables.DISABLE: "",
            variables.STRICT: "",
            # A plugin registers its ops without torch_npu, which may lack the CANN that it needs.
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
    )
    print(json.dumps(outcome.value if outcome.ok else {"refused": f"it {outcome.failure}"}))


def report(plugin: str, distribution: str, opp: str) -> dict[str, Any]:
    """Return the object to print, in the child."""
    try:
        return check(plugin, distribution, opp)
    except (AttributeError, ImportError) as error:
        # Core catches what the plugin raises: here core is not as this file expects.
        return {"skipped": f"this core and this custom_pypto_build do not fit together: {error}"}


def check(plugin: str, distribution: str, opp: str) -> dict[str, Any]:
    """Load `plugin` of `distribution`; see `report`."""
    try:
        import torch  # noqa: F401
    except Exception as error:
        return {"skipped": f"torch cannot be imported: {error}"}
    # A module that imports core fails where it is imported first.
    for entry in metadata.distribution(distribution).entry_points.select(group=GROUP, name=plugin):
        with suppress(Exception, SystemExit):
            import_module(entry.module)
    key = (plugin, distribution)
    [loaded] = [each for each in plugin_list.load() if (each.name, each.distribution) == key]
    if loaded.status == "loaded":
        from custom_pypto.core import api
        from custom_pypto.core.errors import PluginError

        try:
            for each in loaded.ops:
                api.compile_definition(api.contract(each.name))
        except PluginError as error:
            return {"refused": str(error)}
        for mismatch in _mismatches(loaded.library, Path(opp) if opp else None):
            return {"refused": mismatch}
        devices = {op.name: sorted({*op.dispatch_keys} & {*DEVICE_KEYS}) for op in loaded.ops}
        return {"kernels": devices}
    missing = list(filter(_is_missing, metadata.requires(distribution) or []))
    if missing and "No module named" in loaded.reason:
        return {"skipped": f"{loaded.reason}; not installed: {', '.join(missing)}"}
    return {"refused": loaded.reason}


def _mismatches(plugin: Path | None, opp: Path | None) -> Iterator[str]:
    """Yield what of a library's launches does not fit the first header that declares the kernel."""
    # Core is imported already, where that is possible at all.
    from custom_pypto.core import kernel_headers
    from custom_pypto.core.opp import find_packages

    if plugin is None:
        return
    launches, packages = kernel_headers.query_npu_launches(plugin)
    own = find_packages(opp) if opp else ()
    places = [*(package / OPP_LIBRARY for package in own), *packages]
    if cann := os.environ.get("ASCEND_HOME_PATH"):
        # All of CANN's libraries are beside this one, so their headers are in one folder.
        places.append(Path(cann, "lib64", "libopapi.so"))
    for launch in launches:
        compared = (kernel_headers.compare(launch, plugin, place) for place in places)
        mismatch = next((mismatch for mismatch, unchecked in compared if not unchecked), "")
        if mismatch:
            yield f"{mismatch}\nRemedy: {REMEDY}"


def _is_missing(requirement: str) -> bool:
    name = re.match(r"[\w.-]+", requirement)
    try:
        metadata.distribution(name[0] if name else "")
    except metadata.PackageNotFoundError:
        return ";" not in requirement
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])

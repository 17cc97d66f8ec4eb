"""Ends a build: core imports the plugin, so that the build refuses a plugin that fails later."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from custom_pypto_contract import guarded, platforms, variables
from custom_pypto_contract.manifest import GROUP, OPP_FOLDER
from custom_pypto_contract.ops_file import OpsFile

from . import installed, plugin_library
from .errors import BuildError
from .settings import Settings

# As a script, it would put the folder of this package on sys.path.
_RUN_CHECK = f"""
import runpy
runpy.run_path({str(Path(__file__).with_name("check_built.py"))!r}, run_name="__main__")
"""


@dataclass(frozen=True)
class Distribution:
    """The distribution of the plugin: its name, version, requirements and top-level modules.

    `modules` maps the name of a file or folder, as installed, to where it is now.
    """

    name: str
    version: str
    requires: Sequence[str]
    modules: Mapping[str, Path]


def check(
    plugin: Settings, ops: OpsFile, library: Path | None, distribution: Distribution
) -> Mapping[str, Sequence[str]] | None:
    """Install the plugin into a temporary folder, and let the installed core import it there.

    Returns the dispatch keys of devices for which each op has a kernel. Returns None, and says so
    in one line, where the import is not possible: when cross-compiling, or where torch, core or a
    requirement of the distribution is not installed.

    Raises:
        BuildError: the plugin is refused; what import refuses is refused in its words.
    """
    if os.environ.get(variables.BUILD_CHECK) == "0":
        return None
    answer: dict[str, Any] = {"skipped": f"it is built for {platforms.platform_tag()}"}
    if platforms.machine(platforms.platform_tag()) == platform.machine():
        with tempfile.TemporaryDirectory(prefix="custom-pypto-") as folder:
            site = Path(folder).resolve()
            _install(plugin, ops, library, distribution, site)
            answer = _ask_core(plugin, distribution.name, site)
    if "skipped" in answer:
        what = "the plugin was not imported to check it"
        print(f"custom_pypto_build: {what}: {answer['skipped']}", flush=True)
    if "refused" in answer:
        package = distribution.modules[plugin.package].resolve()
        reason = answer["refused"].replace(str(site / plugin.package), str(package))
        raise BuildError(f"the plugin {plugin.name!r} is refused: {reason}")
    kernels: Mapping[str, Sequence[str]] | None = answer.get("kernels")
    return kernels


def _install(
    plugin: Settings, ops: OpsFile, library: Path | None, distribution: Distribution, site: Path
) -> None:
    def skipped(folder: str, names: list[str]) -> set[str]:
        # Kernels for NPUs are large, and import does not look at them.
        is_package = plugin.opp is not None and Path(folder) == distribution.modules[plugin.package]
        return {"__pycache__", *([OPP_FOLDER] if is_package else [])}.intersection(names)

    for name, source in distribution.modules.items():
        if source.is_dir():
            shutil.copytree(source, site / name, ignore=skipped)
        else:
            shutil.copyfile(source, site / name)
    plugin_library.install(
        library,
        # Other plugins, whose ops this one may require, need not be there yet.
        replace(plugin, requires_ops=(), opp=None),
        ops,
        site / plugin.package,
        distribution=distribution.name,
        version=distribution.version,
    )
    requires = "".join(f"Requires-Dist: {each}\n" for each in distribution.requires)
    name = re.sub(r"[-_.]+", "_", distribution.name)
    info = site / f"{name}-{distribution.version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution.name}\nVersion: {distribution.version}\n"
        + requires,
        encoding="utf-8",
    )
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\n{plugin.name} = {plugin.module}\n", encoding="utf-8"
    )
    # An installation has other file modes than the source tree.
    for path in (site, *site.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o022)


def _ask_core(plugin: Settings, distribution: str, site: Path) -> dict[str, Any]:
    """Run check_built.py on the plugin in `site`, and return its report."""
    environment = installed.environment()
    opp = "" if plugin.opp is None else str(plugin.root / plugin.opp)
    path = [str(site), environment.get("PYTHONPATH", "")]
    if variables.TORCH_DIR in os.environ:
        path.append(str(Path(os.environ[variables.TORCH_DIR]).parent))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    status, output, errors = guarded.run(
        [sys.executable, "-c", _RUN_CHECK, plugin.name, distribution, opp],
        cwd=site,
        env=environment,
    )
    if status != 0:
        last = (errors.strip().splitlines() or ["no output"])[-1]
        return {"skipped": f"core cannot be run: {last}"}
    answer: dict[str, Any] = json.loads(output)
    return answer

"""Build the wheels to publish: ``release.py WHEELHOUSE FOLDER ...``, with folders of distributions.

Each plugin becomes a wheel for every platform of `PLATFORMS`. Every wheel is built in two folders,
and both must have equal bytes. Wheels of plugins must pass ``custom-pypto check`` with auditwheel,
and become folders for Hugging Face kernels beside the wheelhouse.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import distributions

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64")
_STALE = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
_KERNELS = "custom-pypto-kernels"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    wheelhouse = options.wheelhouse.resolve()
    shutil.rmtree(wheelhouse, ignore_errors=True)
    projects = distributions.find(options.folders)
    os.environ["SOURCE_DATE_EPOCH"] = _run("git", "log", "-1", "--format=%ct").strip()
    tools, *plugins = distributions.build_requirements(projects)
    first = [*tools, _KERNELS, *(name for each in plugins for name in each)]
    for name in [*first, *(name for name in projects if name not in first)]:
        folder = projects[name]
        if distributions.is_plugin(folder):
            wheels = [_publish_plugin(folder, platform, wheelhouse) for platform in PLATFORMS]
        else:
            wheels = [_build(folder, wheelhouse, {})]
        if name in first:
            distributions.pip("install", "--quiet", "--no-deps", "--force-reinstall", wheels[0])


def _publish_plugin(folder: Path, platform: str, wheelhouse: Path) -> Path:
    wheel = _build(folder, wheelhouse, {"CUSTOM_PYPTO_PLATFORM": platform})
    print(_run("custom-pypto", "check", str(wheel)))
    kernels = wheelhouse.with_name("kernels") / folder.name
    print(_run(sys.executable, "-m", "custom_pypto_kernels", str(wheel), str(kernels)))
    return wheel


def _build(folder: Path, wheelhouse: Path, environment: dict[str, str]) -> Path:
    """Build the wheel of `folder` twice, each time in another place; return it."""
    with tempfile.TemporaryDirectory() as scratch:
        built: list[Path] = []
        for place in ("one", "another/one"):
            copy, wheels = Path(scratch, place, folder.name), Path(scratch, place, "wheels")
            shutil.copytree(folder, copy, ignore=_STALE)
            command = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps")
            done = subprocess.run(
                [*command, "--quiet", "--wheel-dir", wheels, copy],
                env={**os.environ, **environment},
                check=False,
            )
            if done.returncode:
                raise SystemExit(f"{folder.name} could not be built; see above")
            built.extend(wheels.glob("*.whl"))
        one, other = (hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in built)
        print(f"{one}  {built[0].name}", flush=True)
        if one != other:
            raise SystemExit(f"{built[0].name} is not reproducible: another folder gave {other}")
        wheelhouse.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(built[0], wheelhouse))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()

"""Run the same wheels on several versions of torch: ``torches.py WHEELHOUSE [VERSION ...]``.

Each version gets an environment of its own beside the wheelhouse, where the conformance suite of
every plugin runs. With ``--npu`` torch_npu of that version is there, too, and the tests of eager
calls and graphs run on simulated NPUs. pip finds torch where its variables say: PIP_EXTRA_INDEX_URL
may name an index of wheels without CUDA. torch_npu needs one: 2.14 aborts beside a torch with CUDA.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import venv
from pathlib import Path

import distributions

TORCHES = ("2.10.0", "2.13.0", "2.15.0")
TESTING = ("numpy<3", "pluggy", "pytest>=8,<10", "setuptools>=77,<90", "ninja")
OF_TORCH_NPU = ("attrs", "decorator", "protobuf", "psutil", "pyyaml", "scipy")
NPU_TESTS = ("tests/npu/test_eager.py", "tests/npu/test_graph_nodes.py")


def main() -> None:
    """Run the command line; end with 1 if a version failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("versions", nargs="*", default=TORCHES)
    parser.add_argument("--npu", action="store_true")
    options = parser.parse_args()
    wheelhouse = options.wheelhouse.resolve()
    failed = [each for each in options.versions if not _passes(wheelhouse, each, options.npu)]
    if failed:
        raise SystemExit(f"failed on torch {', '.join(failed)}")


def _passes(wheelhouse: Path, version: str, has_npu: bool) -> bool:
    kind = "torch_npu" if has_npu else "torch"
    folder = wheelhouse.with_name(f"{kind}-{version}")
    python = str(folder / "bin/python")
    venv.create(folder, clear=True, with_pip=True)

    def install(*arguments: str) -> None:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)

    install(f"torch=={version}", *TESTING, *(OF_TORCH_NPU if has_npu else ()))
    folders = ["contract", "builder", "core", "blocks", "testing", "plugins/*"]
    folders += ["simulator"] * has_npu
    names = distributions.find(folders)
    install("--no-index", "--find-links", str(wheelhouse), *names)
    environment = dict(os.environ)
    tests = ["-m", "pytest", "plugins", "-k", "test_conformance"]
    if has_npu:
        install("--no-deps", f"torch_npu=={version}")
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        subprocess.run([folder / "bin/custom-pypto-sim", "build"], check=True, env=environment)
        tests = ["-m", "pytest", *NPU_TESTS]
    print(f"== {kind} {version}", flush=True)
    done = subprocess.run([python, *tests], cwd=distributions.ROOT, env=environment, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    main()

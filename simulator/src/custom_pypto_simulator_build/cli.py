"""``custom-pypto-sim``: builds what the simulator needs, runs commands under it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from custom_pypto_build.errors import BuildError

from .libraries import build_kernels, build_libraries


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BuildError as error:
        print(f"custom-pypto-sim: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="custom-pypto-sim",
        description="Runs the published torch_npu without an NPU and without CANN.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a command in which torch_npu finds the simulator")
    run.add_argument("--devices", type=int, help="how many NPUs there are (default 1)")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ...")
    run.set_defaults(run=_run)

    build = commands.add_parser("build", help="build the libraries now, not at first use")
    build.set_defaults(run=_build)

    kernels = commands.add_parser(
        "kernels", help="build the simulated aclnn kernels that plugins name, into an opp tree"
    )
    kernels.add_argument(
        "--folder",
        default="build/simulated-opp",
        type=Path,
        help="the opp tree to write (default: %(default)s)",
    )
    kernels.add_argument(
        "projects",
        nargs="*",
        default=["."],
        metavar="PROJECT",
        help="a folder whose pyproject.toml names simulated kernels (default: this one)",
    )
    kernels.set_defaults(run=_kernels)
    return parser


def _run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        print("custom-pypto-sim run: needs a command after --", file=sys.stderr)
        return 2
    build_libraries()
    environment = dict(os.environ)
    startup = str(Path(__file__).parent / "startup")
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = f"{startup}{os.pathsep}{before}" if before else startup
    if options.devices is not None:
        environment["CUSTOM_PYPTO_SIM_DEVICES"] = str(options.devices)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"custom-pypto-sim run: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127


def _build(options: argparse.Namespace) -> int:
    start = time.monotonic()
    libraries = build_libraries()
    for path in (*libraries.runtime, libraries.ops):
        print(path)
    print(f"ready after {time.monotonic() - start:.1f} s")
    return 0


def _kernels(options: argparse.Namespace) -> int:
    vendors = build_kernels(options.projects, options.folder)
    print(f"ASCEND_CUSTOM_OPP_PATH={os.pathsep.join(map(str, vendors.values()))}")
    return 0

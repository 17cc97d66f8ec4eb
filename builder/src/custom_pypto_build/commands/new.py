"""``custom-pypto new``: the files of a new plugin."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from custom_pypto_cli.commands import TESTING, CommandError
from custom_pypto_cli.terminal import align, show
from custom_pypto_contract.errors import how_to_install

SUMMARY = "write a new plugin, which builds and passes its tests"
DESCRIPTION = (
    "Writes a plugin into the new folder NAME, and says what is left to decide. An op squares its "
    "first tensor until you say what it computes."
)
EXIT_STATUS = "0 written, 1 it cannot be written as asked for"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the name, the schemas and what the plugin has."""
    parser.add_argument(
        "name", metavar="NAME", help="the folder, the distribution and the package: acme-square"
    )
    parser.add_argument(
        "--schema",
        action="append",
        default=[],
        metavar="TEXT",
        help="an op as PyTorch writes it: 'square(Tensor x) -> Tensor'; once for each op (default:"
        " an op called NAME with one tensor)",
    )
    for option, text in (
        ("--python", "the kernel is a Python function; nothing is compiled"),
        ("--npu", "launch an aclnn kernel on NPUs, and an operator in graphs"),
        ("--isa", "compile CPU kernels for each instruction set; needs custom-pypto-blocks"),
    ):
        parser.add_argument(option, action="store_true", help=text)


def run(options: argparse.Namespace) -> int:
    """Write the plugin; print its files and what is left to decide."""
    from custom_pypto_build.scaffold import new_plugin, project

    folder = Path(options.name)
    try:
        made = new_plugin.plan(
            options.name, options.schema, python=options.python, npu=options.npu, isa=options.isa
        )
        written = project.write(made, folder)
    except new_plugin.ScaffoldError as error:
        raise CommandError(str(error)) from None
    lines = [f"wrote {folder}:", *(f"  {name}" for name in written), "", "left to you:"]
    lines += [f"  {line}" for line in align(list(project.decisions(made)))]
    lines += ["", "next:", f"  cd {shlex.quote(str(folder))}"]
    if made.has_isas:
        lines += [f"  # by custom-pypto-blocks: {how_to_install('custom-pypto-blocks')}"]
    lines += ["  pip install --no-build-isolation -e ."]
    lines += [f"  python -m pytest tests  # by {TESTING}: {how_to_install(TESTING)}"]
    show("\n".join(lines))
    return 0

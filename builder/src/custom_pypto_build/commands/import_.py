"""``custom-pypto import``: ops.toml from headers of CANN, operators' prototypes and op-plugin."""

from __future__ import annotations

import argparse
import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from custom_pypto_cli.commands import CommandError
from custom_pypto_cli.terminal import align, show

if TYPE_CHECKING:
    from custom_pypto_build.importing.ops_toml import Imported

SUMMARY = "write ops.toml from aclnn headers, operator prototypes or op-plugin"
DESCRIPTION = (
    "Writes ops.toml with the contract, launch and graph line of each op that the files describe, "
    "npu.cpp, which registers the launches, pyproject.toml, and decisions.txt, the list by source "
    "line of what a person must decide. A file that describes no op is skipped, and listed."
)
EXIT_STATUS = (
    "0 written, 1 written and no op is complete, 2 no file can be read, or one cannot be written"
)

_MOST_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files."""
    for option, text in (
        ("--aclnn", "a header aclnn_*.h: the C order of the arguments of kernels"),
        ("--reg-op", "a source with REG_OP prototypes or OpDef classes of operators"),
        ("--op-plugin", "op_plugin_functions.yaml, or a file of its form; needs PyYAML"),
    ):
        parser.add_argument(
            option, type=Path, nargs="+", action="extend", default=[], metavar="FILE", help=text
        )
    parser.add_argument("--func", metavar="NAME", help="take this function of --op-plugin alone")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where to write; nothing is overwritten (default: the current folder)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the files, and print what they hold and what is open."""
    from custom_pypto_build.importing import ops_toml, read_files
    from custom_pypto_build.importing.model import ImportingError

    sources = read_files.Sources(
        tuple(options.aclnn), tuple(options.reg_op), tuple(options.op_plugin), options.func
    )
    if not sources.names:
        raise CommandError("name a file by --aclnn, --reg-op or --op-plugin", status=2)
    if options.func is not None and not sources.op_plugin:
        raise CommandError("--func is a function of the file that --op-plugin names", status=2)
    # The collector would scan all operators repeatedly.
    gc.disable()
    try:
        imported = read_files.read(sources)
        written = ops_toml.write(imported, sources.names.values(), options.output)
    except ImportingError as error:
        raise CommandError(str(error), status=2) from None
    finally:
        gc.enable()
    show("\n".join(_lines(imported, written)))
    return 0 if any(op.is_complete for op in imported.ops) else 1


def _lines(imported: Imported, written: Sequence[Path]) -> Iterator[str]:
    from custom_pypto_build.importing.model import Subject

    ops, decisions = imported.ops, imported.decisions
    complete = sum(op.is_complete for op in ops)
    rows = [("ops", str(len(ops))), ("complete", str(complete))]
    rows += [("need a person", str(len(ops) - complete))] if complete < len(ops) else []
    # An op counts once for each subject that it needs a decision about.
    open_ = Counter(subject for op in ops for subject in {each.subject for each in op.decisions})
    rows += [(f"  {each.value}", str(open_[each])) for each in Subject if each in open_]
    rows += [("files skipped", str(len(imported.skipped)))] if imported.skipped else []
    yield from align(rows)
    yield ""
    yield from decisions if len(decisions) <= _MOST_SHOWN else decisions[: len(imported.skipped)]
    yield f"wrote {', '.join(map(str, written))}"
    if not complete:
        yield (
            "ops.toml has no complete op: `python -m custom_pypto_contract` and a build refuse it"
            " until you decide what is open, and remove the `# ` marks of an op, and its `// ` in"
            " npu.cpp"
        )

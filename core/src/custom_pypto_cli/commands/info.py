"""``custom-pypto info``: one op or plugin in full."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from custom_pypto_cli import plugin_list
from custom_pypto_cli.commands import CommandError, add_time_limit, load_or_explain
from custom_pypto_cli.terminal import align, show, show_json

SUMMARY = "show one op or plugin: schema, kernels, library"
DESCRIPTION = (
    "Shows an op, or a plugin with its ops: schema, dispatch keys that have kernels, which kernels "
    "run on the CPU and would run on an NPU, arguments, library, distribution."
)
EXIT_STATUS = "0 shown, 1 custom_pypto.core cannot be imported, 2 no such op or plugin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the name and ``--json``."""
    parser.add_argument("name", metavar="NAME", help="an op, a plugin or a distribution")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Print what has the name; an op that is named as its plugin is shows the whole plugin."""
    found = load_or_explain(find, options.name, time_limit=options.time_limit)
    if not found["plugins"]:
        raise CommandError(found["unknown"], status=2)
    if options.json:
        show_json({"plugins": found["plugins"]})
    else:
        blocks = ["\n".join(_lines(plugin, found["contracts"])) for plugin in found["plugins"]]
        show("\n\n".join(blocks))
    return 0


def find(name: str) -> dict[str, Any]:
    """Load the plugins, in a child; return what is called `name`, or a text if nothing is."""
    meant, ops = plugin_list.find_ops(name, plugin_list.load())
    for plugin in meant["plugins"]:
        plugin["npu_kernels"] = plugin_list.npu_kernels(plugin)
    return {**meant, "contracts": {op: plugin_list.describe_contract(op) for _, op in ops}}


def _lines(plugin: dict[str, Any], contracts: dict[str, list[str]]) -> Iterator[str]:
    rows = [
        ("plugin", plugin["name"]),
        ("distribution", f"{plugin['distribution']} {plugin['version']}".strip()),
        ("status", plugin["status"]),
        *(("", line) for line in plugin["reason"].splitlines()),
        ("library", plugin["library"]),
        ("CPU ISA", plugin["cpu_isa"]),
        ("opp folder", plugin["opp"]),
        *(("warning", "; ".join(each)) for each in plugin_list.describe_missing_kernels(plugin)),
    ]
    yield from align([(name, value or "-") for name, value in rows])
    kernels = plugin["npu_kernels"]
    yield from align(list(_on_npu(kernels, op="", title="launches on an NPU")))
    for op in plugin["ops"]:
        yield ""
        yield from align(
            [
                ("op", f"torch.ops.custom_pypto.{op['name']}"),
                ("schema", op["schema"]),
                ("kernels", ", ".join(op["dispatch_keys"]) or "-"),
                *_on_npu(kernels, op=op["name"], title="on an NPU"),
            ]
        )
        yield from contracts.get(op["name"], ())


def _on_npu(kernels: list[dict[str, Any]], *, op: str, title: str) -> Iterator[tuple[str, str]]:
    shown: list[str] = []
    for kernel in kernels:
        if kernel["op"] == op:
            check = plugin_list.describe_kernel("", kernel)
            yield title, check.value
            # Mostly the same places were searched for all kernels of an op.
            if kernel["searched"] != shown or check.level == "problem":
                yield from (("", line) for line in check.remark.splitlines())
            shown = kernel["searched"]

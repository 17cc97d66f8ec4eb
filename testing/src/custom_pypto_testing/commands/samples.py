"""``custom-pypto samples``: the calls that the conformance suite makes of an op."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from custom_pypto_cli import plugin_list
from custom_pypto_cli.commands import add_time_limit, load_or_explain
from custom_pypto_cli.terminal import align, show
from custom_pypto_discovery.printable import shorten

from custom_pypto_testing.commands import expect_loaded

SUMMARY = "show the calls that the conformance suite makes of an op"
DESCRIPTION = (
    "Shows the calls that the conformance suite makes of an op, or of each op of a plugin, on the "
    "CPU: its samples, and random calls that ops.toml allows. The ops are not run."
)
EXIT_STATUS = (
    "0 shown, 1 there are none, or custom_pypto.core cannot be imported, 2 no such op or plugin"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the name."""
    parser.add_argument("name", metavar="NAME", help="an op, a plugin or a distribution")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Print the calls, one a line; 1 if an op has none."""
    found = load_or_explain(find, options.name, time_limit=options.time_limit)
    expect_loaded(found)
    show("\n\n".join("\n".join(_lines(op)) for op in found["ops"]))
    return 1 if any(op["problem"] for op in found["ops"]) else 0


def find(name: str) -> dict[str, Any]:
    """Load the plugins, in a child; return the calls of what is called `name`."""
    meant, ops = plugin_list.find_ops(name, plugin_list.load())
    return {**meant, "ops": [_describe(op) for _, op in ops]}


def _describe(op: str) -> dict[str, Any]:
    """Return names and arguments of the calls of an op, each on one line, or why there are none."""
    calls: list[tuple[str, str]] = []
    try:
        calls.extend(_calls(op))
    except Exception as error:
        # A plugin may give samples that raise anything.
        return {"op": op, "calls": calls, "problem": shorten(f"{type(error).__name__}: {error}")}
    return {"op": op, "calls": calls, "problem": "" if calls else "the suite has no call of it"}


def _calls(op: str) -> Iterator[tuple[str, str]]:
    """Yield the samples, then random calls that the contract allows."""
    from custom_pypto.core.contracts import bind_arguments

    from custom_pypto_testing.case import describe_arguments
    from custom_pypto_testing.drawn_samples import drawn_calls
    from custom_pypto_testing.ops_under_test import op_of_plugin

    found = op_of_plugin(op, "cpu")
    contract = found.contract
    assert contract is not None
    for case in found.cases:
        for each in (case, case.resized) if case.sample.resized else (case,):
            given = bind_arguments(contract, each.args, each.kwargs)
            yield each.sample.name, describe_arguments(given)
    for number, given in enumerate(drawn_calls(contract)):
        yield f"random-{number}", describe_arguments(given)


def _lines(op: dict[str, Any]) -> Iterator[str]:
    yield f"torch.ops.custom_pypto.{op['op']}"
    yield from (f"  {row}" for row in align(op["calls"]))
    if op["problem"]:
        yield f"  problem: {op['problem']}"

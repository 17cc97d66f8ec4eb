"""``custom-pypto samples``: the calls that the conformance suite makes of an op."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from custom_pypto_cli import plugin_list
from custom_pypto_cli.commands import add_time_limit, expect_loaded, load_or_explain
from custom_pypto_cli.terminal import align, show, show_json
from custom_pypto_discovery.printable import shorten

SUMMARY = "show the calls that the conformance suite makes of an op"
DESCRIPTION = (
    "Shows the calls that the conformance suite makes of an op, or of each op of a plugin, on the "
    "CPU: its samples, and random calls that ops.toml allows. The ops are not run."
)
EXIT_STATUS = (
    "0 shown, 1 there are none, or custom_pypto.core cannot be imported, 2 no such op or plugin"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the name, what is drawn, and ``--json``."""
    parser.add_argument("name", metavar="NAME", help="an op, a plugin or a distribution")
    parser.add_argument(
        "--count", type=_count, metavar="N", help="random calls (default: as many as the suite's)"
    )
    parser.add_argument(
        "--seed", metavar="TEXT", help="seed of the random calls (default: the suite's)"
    )
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Print the calls, one a line; 1 if an op has none."""
    found = load_or_explain(
        find, options.name, options.count, options.seed, time_limit=options.time_limit
    )
    expect_loaded(found)
    if options.json:
        for call in (call for op in found["ops"] for call in op["calls"]):
            del call["text"]
        show_json({"ops": found["ops"]})
    else:
        show("\n\n".join("\n".join(_lines(op)) for op in found["ops"]))
    return 1 if any(op["problem"] for op in found["ops"]) else 0


def find(name: str, count: int | None, seed: str | None) -> dict[str, Any]:
    """Load the plugins, in a child; return the calls of what is called `name`."""
    meant, ops = plugin_list.find_ops(name, plugin_list.load())
    return {**meant, "ops": [_calls(op, count, seed) for _, op in ops]}


def _calls(op: str, count: int | None, seed: str | None) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    try:
        calls.extend(_suite_calls(op, count, seed))
    except Exception as error:
        # A plugin may give samples that raise anything.
        problem = shorten(f"{type(error).__name__}: {error}")
        return {"op": op, "calls": calls, "problem": problem}
    return {"op": op, "calls": calls, "problem": "" if calls else "the suite has no call of it"}


def _suite_calls(op: str, count: int | None, seed: str | None) -> Iterator[dict[str, Any]]:
    """Yield each call: the samples, then random calls that the contract allows.

    A call has a `name`, its `arguments` as JSON, and as `text` on one line. `count` and `seed` of
    the random calls are those of the suite where they are None.
    """
    from custom_pypto.core.contracts import bind_arguments

    from custom_pypto_testing.drawn_samples import drawn_calls
    from custom_pypto_testing.ops_under_test import op_of_plugin

    found = op_of_plugin(op, "cpu")
    contract = found.contract
    assert contract is not None
    for case in found.cases:
        for each in (case, case.resized) if case.sample.resized else (case,):
            yield _call(each.sample.name, bind_arguments(contract, each.args, each.kwargs))
    for number, given in enumerate(drawn_calls(contract, count, seed)):
        yield _call(f"random-{number}", given)


def _call(name: str, given: dict[str, Any]) -> dict[str, Any]:
    from custom_pypto.core.call_text import describe_arguments

    arguments = {each: _plain(value) for each, value in given.items()}
    return {"name": name, "arguments": arguments, "text": describe_arguments(given)}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "stride"):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"dtype": dtype, "shape": [*value.shape], "strides": [*value.stride()]}
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _lines(op: dict[str, Any]) -> Iterator[str]:
    yield f"torch.ops.custom_pypto.{op['op']}"
    rows = align([(each["name"], each["text"]) for each in op["calls"]])
    yield from (f"  {row}" for row in rows)
    if op["problem"]:
        yield f"  problem: {op['problem']}"


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or more, got {text}")
    return value

"""The cost of a call through a plugin's function, and through `torch.ops`, on no-ops.

`python -m benchmarks.functions` prints the best of many calls, which take about a microsecond.
"""

from __future__ import annotations

import timeit
from types import SimpleNamespace
from unittest import mock

import custom_pypto  # noqa: F401
import torch
from custom_pypto_plugin import op_function

from benchmarks import no_op

CALLS = 5_000
ROUNDS = 100
ARGUMENTS = {
    "add_custom": "x, x",
    "npu_lightning_indexer_pto": "x, x, x, layout_key='TND', sparse_count=64",
}


def main() -> None:
    """Print a line for each no-op, in microseconds a call."""
    namespace = no_op.ops()
    for op, arguments in ARGUMENTS.items():
        names = {"x": torch.ones(3), "torch": torch, "function": op_function(op)(lambda: None)}
        calls = [f"function({arguments})", f"torch.ops.{namespace.name}.{op}({arguments})"]
        # The first call looks the op up.
        with mock.patch.object(torch, "ops", SimpleNamespace(custom_pypto=namespace)):
            eval(calls[0], names)
        timers = [timeit.Timer(call, globals=names) for call in calls]
        times = [[timer.timeit(CALLS) / CALLS * 1e6 for timer in timers] for _ in range(ROUNDS)]
        ours, theirs = map(min, zip(*times, strict=True))
        print(f"{op}: function {ours:.2f}, torch.ops {theirs:.2f}")


if __name__ == "__main__":
    main()

"""One call, with nothing around it that may fail."""

from __future__ import annotations

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.subject import Op

from .calls import Note, describe, make_calls
from .finding import Finding


def check_launch(op: Op, most: int, note: Note) -> Finding:
    """The first call that the machine's kernel takes, returns, and the device goes on."""
    del most

    def launch(case: Case) -> None:
        case.expect_tensors(case.call().run(), "kernel")
        torch.get_device_module(op.device).synchronize()

    calls = make_calls(op, 1, note, launch)
    return Finding(describe(calls.made[0]), numbers={"refused": calls.refused})

"""The checks of ``custom-pypto verify``, by rising risk."""

from __future__ import annotations

from dataclasses import dataclass

from custom_pypto_contract import variables

DEVICES = ("npu", "cpu")
FASTER = (variables.NPU_ALLOCATION, variables.NPU_EXECUTOR_CACHE)
"""What makes launches faster, and is off unless a check switches it on: these checks say whether
this machine may have it."""
QUEUE = "TASK_QUEUE_ENABLE"
ADD = "add"
"""The check of the machine without which no op is called."""


@dataclass(frozen=True)
class Check:
    """One check, of the machine or of each op."""

    name: str
    what: str
    """What passes it, in a few words."""
    needs: str = ""
    """The check that must have passed before."""
    is_for_cpu: bool = False
    """Whether ``--device cpu`` has it, too."""
    queue: str = ""
    """The value of TASK_QUEUE_ENABLE; if empty, that of the user."""
    switch: str = ""
    """The one of `FASTER` that is on."""


OF_MACHINE = (
    Check("versions", "torch and torch_npu are of one release"),
    Check("symbols", "torch_npu has the functions that core looks up"),
    Check(ADD, "torch's own add is right on the device", "symbols", is_for_cpu=True),
)
OF_OPS = (
    Check("kernels", "the kernel that would be used fits its header", is_for_cpu=True),
    Check("launch", "one call returns", "kernels", is_for_cpu=True, queue="0"),
    Check("results", "calls agree with the reference on the CPU", "launch", is_for_cpu=True),
    Check("repeats", "so do calls at other addresses; no memory is kept", "results", True),
    Check("queue", f"results, with {QUEUE}=2", "results", queue="2"),
    Check("streams", "calls on a stream that still computes their arguments", "results"),
    Check("capture", "torch.npu.NPUGraph, replayed with other values", "streams", queue="1"),
    Check("npugraph_ex", "torch.compile with npugraph_ex", "capture", queue="1"),
    Check("graph", "torch.compile with torchair's graph engine", "results", queue="1"),
    Check("symbolic graph", "the same with symbolic sizes", "graph", queue="1"),
    Check("allocation", f"repeats, with {FASTER[0]}=1", "repeats", switch=FASTER[0]),
    Check("executor cache", f"repeats, with {FASTER[1]}=1", "repeats", switch=FASTER[1]),
    Check("timing", "the time of a call, and of torch.add", "results", is_for_cpu=True),
)


def checks_on(device: str, checks: tuple[Check, ...]) -> list[Check]:
    """Return those of `checks` that there are for `device`."""
    return [check for check in checks if device != "cpu" or check.is_for_cpu]

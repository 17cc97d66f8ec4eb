"""The reference and the samples that an author must provide for each op."""

from __future__ import annotations

from collections.abc import Iterator

from custom_pypto_testing.ops_under_test import Op


def check_has_reference(op: Op) -> None:
    """The op has a reference."""
    if op.reference is None:
        raise AssertionError(
            f"{op.name} has no reference: return one from custom_pypto_references() in the plugin's"
            f" module, {{'{op.name}': Reference(function)}}; function takes the op's arguments and"
            " computes the same with plain torch ops"
        )


def left_out(op: Op) -> Iterator[str]:
    """Say which checks find nothing to check, for lack of a contract or on this device."""
    if op.contract is None:
        yield "random calls, refusals, memory, fuzzing: ops.toml does not describe the op"
        return
    if op.contract.outputs is None:
        yield "random calls: ops.toml does not describe its outputs"
    if op.contract.arguments and not op.contract.tensors:
        yield "refusals, layouts: ops.toml does not describe its tensors"
    if op.is_composed:
        yield "memory that it cannot use: left to the ops that it is composed of"
    if op.device != "cpu":
        yield f"fuzzing: a process that uses {op.device} cannot be forked"


def check_has_samples(op: Op) -> None:
    """The op has samples: one at two sizes if it takes tensors, a float64 one for gradcheck."""
    if not op.cases:
        raise AssertionError(
            f"{op.name} has no samples: return some from custom_pypto_samples() in the plugin's"
            f" module, {{'{op.name}': function}}; function takes a device and yields SampleInput"
        )
    takes_tensors = any(case.copy().tensors for case in op.cases)
    if takes_tensors and all(case.sample.resized is None for case in op.cases):
        raise AssertionError(
            f"{op.name} has no sample at two sizes: give one resized=SampleInput(...), the same"
            " call with tensors of other sizes; dynamic shapes are tested with the two"
        )
    # An NPU has no float64: gradients are checked on the CPU.
    is_checked = op.is_differentiable and op.device == "cpu"
    if is_checked and not any(case.is_float64 for case in op.cases):
        raise AssertionError(
            f"{op.name} is differentiable but has no float64 sample: let its positional"
            " floating-point tensors be float64, and add a small sample where all of them are;"
            " gradients are checked with it"
        )

"""Samples of the plugins' ops on NPUs."""

from __future__ import annotations

from dataclasses import replace

import torch
from custom_pypto import core
from custom_pypto_testing.case import Case
from custom_pypto_testing.subject import Op, Subject


def op(name: str) -> Op:
    """An op with its cases on npu."""
    (plugin,) = (record.plugin for record in core.ops() if record.name == name)
    return next(op for op in Subject.of_plugin(plugin).ops_on("npu") if op.name == name)


def case(name: str, sample: str) -> Case:
    """One case of an op."""
    return next(case for case in op(name).cases if case.sample.name == sample)


# Those with which the other arguments stay valid.
_LENGTHS = ("act_seqs", "actual_seq_lengths_key")


def altered(original: Case) -> Case:
    """The case with other values in tensors of the same shapes: shorter lengths, moved numbers."""

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return tensor.flatten().roll(1).view(tensor.shape)
        if name in _LENGTHS and original.sample.kwargs.get("layout_key") != "TND":
            return (tensor - 1).clamp(min=0)
        return tensor.clone()

    call = original.call().map(change)
    sample = replace(original.sample, args=call.args, kwargs=call.kwargs)
    return Case(original.op, sample, original.reference)

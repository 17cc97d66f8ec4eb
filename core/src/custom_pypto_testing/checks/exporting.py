"""Ops in torch.export."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import Dim

from custom_pypto_testing.call import Call, tensor_outputs
from custom_pypto_testing.case import Case

from .compilation import assert_same_results
from .side_effects import arguments_after


def check_exported(case: Case) -> None:
    """A program exported from the sample, its changing dimensions dynamic, runs `resized` too."""
    call = case.call()
    program = torch.export.export(
        _Module(call),
        (call.tensors,),
        dynamic_shapes=({n: dict.fromkeys(d, Dim.DYNAMIC) for n, d in case.dynamic_dims.items()},),
    )
    if not any(node.target is case.op for node in program.graph.nodes):
        raise AssertionError(f"{case.name} is not in the exported program:\n{program.graph}")
    for eager, exported in (
        (case.call(), case.call()),
        (case.resized_call(), case.resized_call()),
    ):
        expected = tensor_outputs(eager.run()) | arguments_after(eager)
        result = program.module()(exported.tensors)
        actual = tensor_outputs(result) | arguments_after(exported)
        assert_same_results(case.call(), actual, expected, "in the exported program")


class _Module(torch.nn.Module):
    """The call, with its tensors as the one argument."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def forward(self, tensors: dict[str, torch.Tensor]) -> Any:
        return self._call.replace(tensors).run()

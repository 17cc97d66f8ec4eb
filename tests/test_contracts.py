"""Kernels and fakes of every op against its contract: many valid calls, and many that break a rule.

The conformance suite does the same with fewer calls, and compares values too.
"""

from __future__ import annotations

import importlib
import inspect
from collections import Counter
from importlib import metadata
from random import Random

import custom_pypto.core as core
import pytest
import torch
from custom_pypto_build import ops_module
from custom_pypto_contract import manifest
from custom_pypto_testing import drawing, violations
from torch._subclasses.fake_tensor import FakeTensorMode

OPS = [op.name for op in core.ops()]
VALID = 100
ROUNDS = 5


def outcome(op, given):
    """The layout of a call's results, or the first line of its error."""
    try:
        result = getattr(torch.ops.custom_pypto, op)(**given)
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    if result is None:
        return []
    results = result if isinstance(result, tuple) else (result,)
    return [(tuple(each.shape), each.dtype, each.stride()) for each in results]


def outcomes(op, given):
    """The outcomes of the kernel and of the fake."""
    mode = FakeTensorMode()
    fakes = {
        name: mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
        for name, value in given.items()
    }
    with mode:
        of_fake = outcome(op, fakes)
    return outcome(op, given), of_fake


@pytest.mark.parametrize("op", OPS)
def test_kernel_and_fake_accept_the_same_calls(op):
    contract, random = core.contract(op), Random(13)
    for _ in range(VALID):
        given = drawing.draw(contract, random)
        of_kernel, of_fake = outcomes(op, given)
        assert isinstance(of_kernel, list), of_kernel
        assert of_fake == of_kernel


@pytest.mark.parametrize("op", OPS)
def test_kernel_and_fake_refuse_every_violation_with_the_same_text(op):
    contract, random = core.contract(op), Random(13)
    rules = Counter()
    for _ in range(ROUNDS):
        for each in violations.violations(contract, random):
            of_kernel, of_fake = outcomes(op, each.given)
            assert f"{op}: argument '{each.argument}' " in of_kernel, (each.rule, of_kernel)
            assert of_fake == of_kernel
            rules[each.argument, each.rule] += 1
    # A contract without requirements has no rule to break.
    assert rules or not any(tensor.shape or tensor.dtype.allowed for tensor in contract.tensors)


@pytest.mark.parametrize("plugin", [each.name for each in core.plugins()])
def test_every_op_is_a_function_of_its_package(plugin):
    [entry_point] = metadata.entry_points(group=manifest.GROUP, name=plugin)
    package = importlib.import_module(entry_point.module)
    for op in (op for op in core.ops() if op.plugin == plugin):
        function = getattr(package, ops_module.function_name(op.name))
        arguments = [each.name for each in core.contract(op.name).arguments]
        assert list(inspect.signature(function).parameters) == arguments
        # The error of one argument too many is the op's own.
        with pytest.raises((RuntimeError, TypeError), match=rf"^custom_pypto::{op.name}\("):
            function(*arguments, "one more")


@pytest.mark.parametrize("plugin", [each.name for each in core.plugins()])
def test_kernels_of_launch_lines_are_known_before_they_are_launched(plugin):
    [record] = (each for each in core.plugins() if each.name == plugin)
    known = {(kernel.op, kernel.symbols) for kernel in core.npu_kernels(plugin)}
    for op in record.ops:
        calls = core.contract(op.name).npu.launch
        assert not calls or (op.name, tuple(call.name for call in calls)) in known

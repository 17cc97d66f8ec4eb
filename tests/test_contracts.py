"""Every op's contract, typed function and kernels; the conformance suite compares results."""

import importlib
import inspect
from importlib import metadata
from random import Random

import custom_pypto.core as core
import pytest
from custom_pypto_build import ops_module
from custom_pypto_contract import manifest
from custom_pypto_testing.violations import violations
from programs import run_python

PLUGINS = [each.name for each in core.plugins()]


@pytest.mark.parametrize("op", core.ops(), ids=lambda op: op.name)
def test_a_call_can_break_an_op_s_contract(op):
    contract = core.contract(op.name)
    requires = any(each.shape or each.dtype.allowed for each in contract.tensors)
    assert not requires or any(violations(contract, Random(0)))


@pytest.mark.parametrize("plugin", PLUGINS)
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


@pytest.mark.parametrize("plugin", PLUGINS)
def test_kernels_of_launch_lines_are_known_before_they_are_launched(plugin):
    [record] = (each for each in core.plugins() if each.name == plugin)
    known = {(kernel.op, kernel.symbols) for kernel in core.npu_kernels(plugin)}
    for op in record.ops:
        calls = core.contract(op.name).npu.launch
        assert not calls or (op.name, tuple(call.name for call in calls)) in known


def test_references_and_samples_need_no_suite() -> None:
    code = """
import sys
sys.modules["custom_pypto_testing"] = None
from custom_pypto import core
for op in core.ops():
    core.reference(op.name), list(core.samples(op.name, "cpu"))
"""
    run_python("-c", code)

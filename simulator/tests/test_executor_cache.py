"""CANN's cache of executors, used by hand: misuse, and what core's launches do not do.

tests/npu/launch/test_executor_cache.py has the launches of core.
"""

from __future__ import annotations

from functools import partial

import pytest
from script import PRELUDE, Run

USING = (
    PRELUDE
    + """
def begin(op, key, *tensors):
    used = function("CanUsePTACache", ctypes.c_bool)(op)
    function("InitPTACacheThreadLocal", None)()
    for each in tensors:
        storage = each.untyped_storage().data_ptr()
        function("AddTensorAddrToCachedList", None)(ctypes.c_void_p(storage))
    function("SetPTACacheHashKey", None)(key, ctypes.c_size_t(len(key)))
    return used

def find(key):
    size = ctypes.c_uint64()
    found = function("PTAFindExecCache", ctypes.c_void_p)(
        key, ctypes.c_size_t(len(key)), ctypes.byref(size))
    return (ctypes.c_void_p(found), size) if found else None

def prepare(op, *tensors):
    made = [tensor(each) for each in tensors]
    return (*phase_1(op.decode(), *made), made)

def finish(op, executor, size, made=()):
    try:
        phase_2(op.decode(), executor, size)
    finally:
        torch.npu.synchronize()
        destroy("Tensor", *made)
        function("UnInitPTACacheThreadLocal", None)()

def launch_as(key, op, *tensors):
    begin(op, key, *tensors)
    finish(op, *prepare(op, *tensors))

def npu(*values):
    return torch.tensor(values).npu()

OP, KEY = b"aclnnTestWorkspace", ctypes.create_string_buffer(b"a key")
"""
)


@pytest.fixture
def run(run: Run) -> Run:
    """Runs a script after `USING`."""
    return partial(run, prelude=USING)


def test_the_key_is_read_in_phase_1(run: Run) -> None:
    run("""
        x, out = npu(1.0), npu(0.0)
        begin(OP, KEY, x, out)
        KEY.value = b"b key"
        finish(OP, *prepare(OP, x, out))
        begin(OP, KEY, x, out)
        executor, size = find(KEY)
        assert find(ctypes.create_string_buffer(b"a key")) is None
        finish(OP, executor, size)
    """)


def test_storages_that_are_not_those_of_the_op_fail_phase_2(run: Run) -> None:
    run("""
        x, out = npu(1.0), npu(0.0)
        launch_as(KEY, OP, x, out)
        begin(OP, KEY, x)
        text = "the launch in the cache has 2 tensors, but AddTensorAddrToCachedList was called"
        with raises(text):
            finish(OP, *find(KEY))
    """)


def test_an_executor_from_the_cache_is_for_one_launch(run: Run) -> None:
    run("""
        x, out = npu(1.0), npu(0.0)
        launch_as(KEY, OP, x, out)
        begin(OP, KEY, x, out)
        executor, size = find(KEY)
        finish(OP, executor, size)
        with raises("561101"):
            finish(OP, executor, size)
    """)


def test_an_op_that_sets_the_shape_of_an_output_is_not_cached(run: Run) -> None:
    run("""
        x, out = npu(1.0, 0.0, 2.0), npu(0.0, 0.0, 0.0)
        launch_as(KEY, b"aclnnTestPositive", x, out)
        assert out.tolist() == [1, 2, 0]
        begin(b"aclnnTestPositive", KEY, x, out)
        assert find(KEY) is None
    """)

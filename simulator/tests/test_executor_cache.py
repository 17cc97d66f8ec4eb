"""CANN's cache of executors, used by hand: misuse, and what core's launches do not do.

tests/npu/launch/test_executor_cache.py has the launches of core.
"""

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


# What is told of the cache, and a script after `USING` that shows it.
MISUSE = {
    "the key is read in phase 1": """
x, out = npu(1.0), npu(0.0)
begin(OP, KEY, x, out)
KEY.value = b"b key"
finish(OP, *prepare(OP, x, out))
begin(OP, KEY, x, out)
executor, size = find(KEY)
assert find(ctypes.create_string_buffer(b"a key")) is None
finish(OP, executor, size)
""",
    "storages that are not those of the op fail phase 2": """
x, out = npu(1.0), npu(0.0)
launch_as(KEY, OP, x, out)
begin(OP, KEY, x)
with raises("the launch in the cache has 2 tensors, but AddTensorAddrToCachedList was called"):
    finish(OP, *find(KEY))
""",
    "an op that sets the shape of an output is not cached": """
x, out = npu(1.0, 0.0, 2.0), npu(0.0, 0.0, 0.0)
launch_as(KEY, b"aclnnTestPositive", x, out)
assert out.tolist() == [1, 2, 0]
begin(b"aclnnTestPositive", KEY, x, out)
assert find(KEY) is None
""",
}


@pytest.mark.parametrize("script", MISUSE.values(), ids=MISUSE)
def test_the_cache_is_as_cann_s(run: Run, script: str) -> None:
    run(script, prelude=USING)

"""CANN's cache of executors, used by hand as launchers use it."""

from __future__ import annotations

from pathlib import Path

from script import PRELUDE, Run

USING = (
    PRELUDE
    + """
import ctypes
from launch import LaunchError, _function, destroy, tensor

def begin(op, key, *tensors):
    used = _function("CanUsePTACache", ctypes.c_bool)(op)
    _function("InitPTACacheThreadLocal", None)()
    for each in tensors:
        storage = each.untyped_storage().data_ptr()
        _function("AddTensorAddrToCachedList", None)(ctypes.c_void_p(storage))
    _function("SetPTACacheHashKey", None)(key, ctypes.c_size_t(len(key)))
    return used

def find(key):
    size = ctypes.c_uint64()
    found = _function("PTAFindExecCache", ctypes.c_void_p)(
        key, ctypes.c_size_t(len(key)), ctypes.byref(size))
    return (ctypes.c_void_p(found), size) if found else None

def prepare(op, *tensors):
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    made = [tensor(each) for each in tensors]
    code = _function(op.decode() + "GetWorkspaceSize")(
        *made, ctypes.byref(size), ctypes.byref(executor))
    assert code == 0
    return executor, size, made

def finish(op, executor, size, made=()):
    space = torch.empty(size.value, dtype=torch.uint8, device="npu")
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    code = _function(op.decode())(ctypes.c_void_p(space.data_ptr()), size, executor, stream)
    torch.npu.synchronize()
    destroy("Tensor", *made)
    _function("UnInitPTACacheThreadLocal", None)()
    if code:
        raise LaunchError(2, code)

def launch(op, key, *tensors):
    begin(op, key, *tensors)
    finish(op, *prepare(op, *tensors))

def npu(*values):
    return torch.tensor(values).npu()

OP, KEY = b"aclnnTestWorkspace", ctypes.create_string_buffer(b"a key")
"""
)


def test_an_executor_is_found_for_the_new_storages(run: Run, opp: Path) -> None:
    run(
        """
        first, out = npu(1.0, 2.0), npu(0.0, 0.0)
        launch(OP, KEY, first, out)
        second, other = npu(3.0, 4.0), npu(0.0, 0.0)
        begin(OP, KEY, second, other)
        executor, size = find(KEY)
        assert size.value == 8
        finish(OP, executor, size)
        assert (out.tolist(), other.tolist()) == ([2, 4], [6, 8])
        assert sim.live_objects()["executor"] == 0
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_an_executor_is_not_found_before_phase_2(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0), npu(0.0)
        begin(OP, KEY, x, out)
        prepared = prepare(OP, x, out)
        assert find(KEY) is None
        finish(OP, *prepared)
        begin(OP, KEY, x, out)
        executor, _ = find(KEY)
        destroy("AclOpExecutor", executor)
        assert sim.live_objects()["executor"] == 0
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_the_key_is_read_in_phase_1(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0), npu(0.0)
        begin(OP, KEY, x, out)
        KEY.value = b"b key"
        finish(OP, *prepare(OP, x, out))
        begin(OP, KEY, x, out)
        executor, size = find(KEY)
        assert find(ctypes.create_string_buffer(b"a key")) is None
        finish(OP, executor, size)
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_storages_that_are_not_those_of_the_op_fail_phase_2(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0), npu(0.0)
        launch(OP, KEY, x, out)
        begin(OP, KEY, x)
        try:
            finish(OP, *find(KEY))
        except LaunchError as error:
            text = "the launch in the cache has 2 tensors, but AddTensorAddrToCachedList was called"
            assert text in str(error), error
        else:
            raise AssertionError
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_an_executor_from_the_cache_is_for_one_launch(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0), npu(0.0)
        launch(OP, KEY, x, out)
        begin(OP, KEY, x, out)
        executor, size = find(KEY)
        assert _function("aclSetAclOpExecutorRepeatable")(executor) == 561000
        finish(OP, executor, size)
        try:
            finish(OP, executor, size)
        except LaunchError as error:
            assert "561101" in str(error)
        else:
            raise AssertionError
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_a_repeatable_executor_leaves_the_cache(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0), npu(0.0)
        begin(OP, KEY, x, out)
        executor, size, made = prepare(OP, x, out)
        assert _function("aclSetAclOpExecutorRepeatable")(executor) == 0
        for value in (2, 3):
            x.fill_(value)
            finish(OP, executor, size)
            assert out.item() == 2 * value
        destroy("AclOpExecutor", executor)
        destroy("Tensor", *made)
        begin(OP, KEY, x, out)
        assert find(KEY) is None
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_an_executor_of_another_op_or_thread_is_not_found(run: Run, opp: Path) -> None:
    run(
        """
        import threading
        x, out = npu(1.0), npu(0.0)
        launch(OP, KEY, x, out)
        begin(b"aclnnTestAdd", KEY, x, out)
        assert find(KEY) is None
        found = []
        def look():
            begin(OP, KEY, x, out)
            found.append(find(KEY))
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert found == [None]
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_an_op_that_decides_its_shape_is_not_kept(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0, 0.0, 2.0), npu(0.0, 0.0, 0.0)
        launch(b"aclnnTestPositive", KEY, x, out)
        assert out.tolist() == [1, 2, 0]
        begin(b"aclnnTestPositive", KEY, x, out)
        assert find(KEY) is None
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_what_is_prepared_outside_of_its_use_is_not_kept(run: Run, opp: Path) -> None:
    run(
        """
        x, out = npu(1.0), npu(0.0)
        begin(OP, KEY, x, out)
        _function("UnInitPTACacheThreadLocal", None)()
        finish(OP, *prepare(OP, x, out))
        begin(OP, KEY, x, out)
        assert find(KEY) is None
    """,
        prelude=USING,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_it_can_be_left_out(run: Run, opp: Path) -> None:
    script = """
        assert begin(OP, KEY) == {used}
    """
    for used in (True, False):
        run(
            script.format(used=used),
            prelude=USING,
            ASCEND_CUSTOM_OPP_PATH=opp,
            CUSTOM_PYPTO_SIM_EXECUTOR_CACHE=int(used),
        )

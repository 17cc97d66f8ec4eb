"""Faults of CANN that the simulator injects, and misuse of memory that it detects."""

from __future__ import annotations

from pathlib import Path

import pytest
from script import Run


@pytest.mark.parametrize(("kind", "phase"), [("creation", 0), ("phase1", 1), ("phase2", 2)])
def test_a_call_fails_once_and_the_next_works(run: Run, opp: Path, kind: str, phase: int) -> None:
    run(
        f"""
        from launch import LaunchError, launch_tensors
        value, out = torch.ones(2, device="npu"), torch.empty(2, device="npu")
        sim.fail("{kind}")
        try:
            launch_tensors("aclnnTestAdd", value, value, out)
        except LaunchError as error:
            assert "phase {phase}" in str(error) and "fault injected ({kind}" in str(error), error
        else:
            raise AssertionError
        assert not sim.disarm("{kind}")
        launch_tensors("aclnnTestAdd", value, value, out)
        assert out.cpu().tolist() == [2, 2] and sim.live_objects()["tensor"] == 0
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_every_call_of_a_launch_can_fail(run: Run, opp: Path) -> None:
    run(
        """
        from launch import LaunchError, launch_tensors
        value, out = torch.ones(2, device="npu"), torch.empty(2, device="npu")
        failed = 0
        for nth in range(1, 100):
            sim.fail("call", nth)
            try:
                launch_tensors("aclnnTestAdd", value, value, out)
            except LaunchError:
                failed += 1
            if sim.disarm("call"):
                break
        assert failed == 5  # three tensors and two phases
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_an_allocation_fails(run: Run) -> None:
    run("""
        sim.fail("allocation", 1)
        try:
            torch.empty(1 << 20, device="npu")
        except RuntimeError:
            pass
        assert not sim.disarm("allocation")
        assert torch.ones(1, device="npu").item() == 1
    """)


def test_an_execution_fails_at_the_synchronisation(run: Run) -> None:
    run(
        """
        value = torch.ones(2, device="npu")
        torch.npu.synchronize()
        sim.fail("execution")
        value.add_(1)
        try:
            torch.npu.synchronize()
        except RuntimeError as error:
            assert "fault injected (execution" in str(error)
        else:
            raise AssertionError
    """,
        TASK_QUEUE_ENABLE=0,
    )


def test_faults_can_be_armed_by_the_environment(run: Run) -> None:
    result = run(
        "torch.ones(2, device='npu') + 1",
        check=False,
        TASK_QUEUE_ENABLE=0,
        CUSTOM_PYPTO_SIM_FAIL="phase1:1",
    )
    assert result.returncode != 0
    assert "fault injected (phase1 1)" in result.stderr


def test_a_setting_that_cannot_be_read_ends_the_process(run: Run) -> None:
    result = run("torch.ones(2, device='npu')", check=False, CUSTOM_PYPTO_SIM_FAIL="phase3:1")
    assert result.returncode != 0
    assert "CUSTOM_PYPTO_SIM_FAIL must be kind:k" in result.stderr


def test_an_unknown_kind_is_refused(run: Run) -> None:
    run("""
        try:
            sim.fail("phase3")
        except ValueError as error:
            assert "kind must be one of allocation" in str(error)
        else:
            raise AssertionError
    """)


def test_a_write_past_a_buffer_is_seen(run: Run, opp: Path) -> None:
    run(
        """
        from launch import launch_tensors
        value, out = torch.ones(32, device="npu"), torch.empty(32, device="npu")
        assert sim.damage() == ""
        launch_tensors("aclnnTestOverrun", value, out)
        torch.npu.synchronize()
        assert "something wrote byte" in sim.damage()
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
        PYTORCH_NO_NPU_MEMORY_CACHING=1,
    )


def test_memory_is_poisoned_before_its_first_use(run: Run) -> None:
    run(
        """
        value = torch.empty(16, dtype=torch.uint8, device="npu")
        assert value.cpu().tolist() == [0xA5] * 16
    """,
        CUSTOM_PYPTO_SIM_POISON=1,
        PYTORCH_NO_NPU_MEMORY_CACHING=1,
    )


def test_a_workspace_freed_before_the_op_runs_is_noticed(run: Run, opp: Path) -> None:
    run(
        """
        import ctypes
        from launch import _function, tensor
        value, out = torch.ones(64, device="npu"), torch.empty(64, device="npu")
        torch.npu.synchronize()
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        assert _function("aclnnTestWorkspaceGetWorkspaceSize")(
            tensor(value), tensor(out), ctypes.byref(size), ctypes.byref(executor)) == 0
        workspace, acl = ctypes.c_void_p(), ctypes.CDLL("libascendcl.so")
        acl.aclrtMalloc(ctypes.byref(workspace), size, 0)
        sim.delay("aclnnTestWorkspace", 0.1)
        stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
        assert _function("aclnnTestWorkspace")(workspace, size, executor, stream) == 0
        acl.aclrtFree(workspace)
        try:
            torch.npu.synchronize()
        except RuntimeError as error:
            assert "the workspace is not in a live allocation" in str(error)
        else:
            raise AssertionError
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )

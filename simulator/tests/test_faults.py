"""Faults of CANN that the simulator injects, and misuse of memory that it detects."""

from __future__ import annotations

import pytest
from script import Run


@pytest.mark.parametrize(("kind", "phase"), [("creation", 0), ("phase1", 1), ("phase2", 2)])
def test_a_call_fails_once_and_the_next_works(run: Run, kind: str, phase: int) -> None:
    run(f"""
        value, out = torch.ones(2, device="npu"), torch.empty(2, device="npu")
        sim.fail("{kind}")
        with raises("phase {phase}", "fault injected ({kind}"):
            launch_tensors("aclnnTestAdd", value, value, out)
        assert not sim.disarm("{kind}")
        launch_tensors("aclnnTestAdd", value, value, out)
        assert out.cpu().tolist() == [2, 2] and sim.live_objects()["tensor"] == 0
    """)


def test_every_call_of_a_launch_can_fail(run: Run) -> None:
    run("""
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
    """)


@pytest.mark.parametrize("name", ["aclCreateTensor", "aclDestroyTensor", "aclnnTestAdd"])
def test_one_function_fails_in_the_call_that_is_named_and_no_other(run: Run, name: str) -> None:
    run(f"""
        value, out = torch.ones(2, device="npu"), torch.empty(2, device="npu")
        sim.fail_function("aclCreateScalar")
        launch_tensors("aclnnTestAdd", value, value, out)
        assert sim.disarm_function()
        torch.npu.synchronize()  # the execution counts as a call, too
        sim.fail_function({name!r}, 2)
        with raises("", error=(LaunchError, AssertionError)):
            launch_tensors("aclnnTestAdd", value, value, out)
        assert not sim.disarm_function()
    """)


def test_an_allocation_fails(run: Run) -> None:
    run("""
        sim.fail("allocation", 1)
        with contextlib.suppress(RuntimeError):
            torch.empty(1 << 20, device="npu")
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
        with raises("fault injected (execution"):
            torch.npu.synchronize()
    """,
        TASK_QUEUE_ENABLE=0,
    )


def test_faults_can_be_armed_by_the_environment(run: Run) -> None:
    run(
        "torch.ones(2, device='npu') + 1",
        fails="fault injected (phase1 1)",
        TASK_QUEUE_ENABLE=0,
        CUSTOM_PYPTO_SIM_FAIL="phase1:1",
    )


def test_a_setting_that_cannot_be_read_ends_the_process(run: Run) -> None:
    message = "CUSTOM_PYPTO_SIM_FAIL must be kind:k"
    run("torch.ones(2, device='npu')", fails=message, CUSTOM_PYPTO_SIM_FAIL="phase3:1")


def test_an_unknown_kind_is_refused(run: Run) -> None:
    run("""
        with raises("kind must be one of allocation", error=ValueError):
            sim.fail("phase3")
    """)


def test_a_write_past_a_buffer_is_seen(run: Run) -> None:
    run(
        """
        value, out = torch.ones(32, device="npu"), torch.empty(32, device="npu")
        assert sim.damage() == ""
        launch_tensors("aclnnTestOverrun", value, out)
        torch.npu.synchronize()
        assert "something wrote byte" in sim.damage()
    """,
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


def test_a_workspace_freed_before_the_op_runs_is_noticed(run: Run) -> None:
    run("""
        value, out = torch.ones(64, device="npu"), torch.empty(64, device="npu")
        torch.npu.synchronize()
        executor, size = phase_1("aclnnTestWorkspace", tensor(value), tensor(out))
        workspace, acl = ctypes.c_void_p(), ctypes.CDLL("libascendcl.so")
        acl.aclrtMalloc(ctypes.byref(workspace), size, 0)
        sim.delay("aclnnTestWorkspace", 0.1)
        phase_2("aclnnTestWorkspace", executor, size, workspace)
        acl.aclrtFree(workspace)
        with raises("the workspace is not in a live allocation"):
            torch.npu.synchronize()
    """)

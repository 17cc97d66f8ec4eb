"""Faults of CANN that the simulator injects, and misuse of memory that it detects.

tests/npu/launch/test_faults.py has every function that can fail, in launches of core.
"""

from script import Run


def test_a_setting_that_cannot_be_read_ends_the_process(run: Run) -> None:
    message = "CUSTOM_PYPTO_SIM_MEMORY must be a whole number, got '1G'"
    run("torch.ones(2, device='npu')", fails=message, CUSTOM_PYPTO_SIM_MEMORY="1G")


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

"""The emulated runtime under torch_npu: devices, memory, streams, events and captured graphs."""

import pytest
from programs import run_python
from script import Run


def test_activation_after_torch_npu_is_refused(run: Run) -> None:
    run(
        """
        import sys, torch_npu
        del sys.modules["custom_pypto_simulator"]
        import custom_pypto_simulator
    """,
        prelude="",
        fails="ImportError: custom_pypto_simulator must be imported before torch_npu",
    )


def test_the_simulator_imports_neither_torch_nor_torch_npu() -> None:
    run_python("-c", "import sys, custom_pypto_simulator; sys.exit('torch' in sys.modules)")


@pytest.mark.parametrize("wait", ["Stream", "Event"])
def test_a_thread_that_waits_with_the_gil_lets_the_stream_use_python(run: Run, wait: str) -> None:
    run(f"""
        value, event = torch.zeros(1, device="npu"), torch.npu.Event()
        torch.npu.synchronize()
        sim.delay("aclnnInplaceAdds", 0.1)
        value.add_(1)
        seen, acl = [], ctypes.PyDLL("libascendcl.so")
        stream = torch.npu.current_stream().npu_stream
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
        acl.aclrtLaunchHostFunc(ctypes.c_void_p(stream), function, ctypes.c_void_p(1))
        event.record()
        # `npu_stream` waits until the queue of torch_npu has recorded the event.
        stream = torch.npu.current_stream().npu_stream
        handle = {{"Stream": stream, "Event": event.npu_event}}["{wait}"]
        assert acl.aclrtSynchronize{wait}(ctypes.c_void_p(handle)) == 0
        assert seen == [1]
    """)


def test_fork_after_use_leaves_the_parent_working(run: Run) -> None:
    run("""
        import os
        value = torch.ones(2, device="npu")
        torch.npu.synchronize()
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (value + 1).cpu().tolist() == [2, 2]
    """)


def test_a_missing_event_shows_a_stale_value(run: Run) -> None:
    run("""
        value, seen = torch.zeros(1, device="npu"), []
        side = torch.npu.Stream()
        torch.npu.synchronize()
        for waits in (False, True):
            value.zero_()
            torch.npu.synchronize()
            sim.delay("aclnnInplaceAdds", 0.2)
            value.add_(1)
            event = torch.npu.Event()
            event.record()
            with torch.npu.stream(side):
                if waits:
                    side.wait_event(event)
                seen.append(value.clone())
            torch.npu.synchronize()
        assert [each.item() for each in seen] == [0, 1]
    """)


def test_graph_capture_refuses_a_host_synchronisation(run: Run) -> None:
    run(
        """
        value = torch.ones(3, device="npu")
        with torch.npu.graph(torch.npu.NPUGraph()):
            value.sum().item()
    """,
        fails="captured into a graph",
    )


def test_an_op_that_is_not_emulated_fails_by_name(run: Run) -> None:
    # Without the queue, in whose thread torch_npu may lose the error.
    script = "torch.erfinv(torch.zeros(3, device='npu')).cpu()"
    run(script, fails="the op 'Erfinv' has no aclnn function", TASK_QUEUE_ENABLE=0)


def test_random_numbers_follow_the_seed(run: Run) -> None:
    run("""
        torch.manual_seed(3)
        first = torch.randn(5, device="npu"), torch.rand(5, device="npu")
        torch.manual_seed(3)
        again = torch.randn(5, device="npu"), torch.rand(5, device="npu")
        assert first[0].cpu().equal(again[0].cpu()) and first[1].cpu().equal(again[1].cpu())
        assert not first[0].cpu().equal(torch.randn(5, device="npu").cpu())
    """)


# Ops of torch that torch_npu calls by an aclnn function each and that tests of plugins do not call.
CALLS = """
a[a > 0]
(a > 0).nonzero()
torch.stack([a, b])
a.max()
a.amax(1)
a.tril()
a.flip(0)
a.cumsum(0)
a.masked_fill(a > 0, 7.0)
torch.addmm(a, b, c)
a.gather(1, a.argmax(1, keepdim=True))
a.index_select(0, i[0] % 3)
torch.logical_xor(a > 0, b > 0)
torch.addcmul(a, b, c, value=2)
torch.addcdiv(a, b, c, value=2)
torch.baddbmm(a[None], b[None], c[None].mT, beta=2)
torch.nn.functional.gelu(a)
torch.nn.functional.softplus(a)
torch.isposinf(a / 0)
torch.erf(a)
torch.exp2(a)
c.log10()
c.log2()
a.trunc_()
torch.fmod(a, b)
a.fmod_(2)
torch.pow(2, a)
i ^ 3
i ^ i.flip(0)
torch.div(a, b, rounding_mode="trunc")
torch.div(a, 0.3, rounding_mode="floor")
torch.argmin(a, 1)
torch.linalg.vector_norm(a, 3, dim=(0,))
torch.prod(a)
torch.roll(a, (1, 2), (0, 1))
torch.index_copy(a, 0, i[0] % 3, b)
torch.scatter_add(a, 0, i % 3, b)
a.scatter_(0, i % 3, b)
a.scatter_(0, i % 3, 2.0)
torch.eye(3, 4, device=a.device)
torch.linspace(0, 2, 5, device=a.device)
torch.randperm(9, device=a.device).sort().values
torch.ops.aten.sigmoid_backward(a, c)
torch.ops.aten.tanh_backward(a, c)
torch.ops.aten.threshold_backward(a, b, 0)
torch.ops.aten._softmax_backward_data(a, c, 1, a.dtype)
"""


def test_ops_of_torch_that_no_plugin_uses_are_those_of_the_cpu(run: Run) -> None:
    run(f"""
        torch.manual_seed(0)
        a, b, c = torch.randn(3, 3), torch.randn(3, 3), torch.rand(3, 3) + 1
        i = torch.tensor([[4, 0, 5], [1, 2, 0], [8, 7, 6]])
        for call in {CALLS.split(chr(10))!r}[1:-1]:
            given = {{"a": a, "b": b, "c": c, "i": i}}
            on_npu = eval(call, {{"torch": torch}}, {{n: t.npu() for n, t in given.items()}})
            wanted = eval(call, {{"torch": torch}}, {{n: t.clone() for n, t in given.items()}})
            assert on_npu.device.type == "npu", call
            torch.testing.assert_close(on_npu.cpu(), wanted, msg=lambda text: call + ": " + text)
        assert "device='npu:0'" in repr(a.npu())
    """)

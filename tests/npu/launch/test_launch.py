"""The arguments that a launch marshals, and what a failed call leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_testing.verification.report import FASTER


def test_every_kind_of_argument_arrives(launch: Callable[..., Any], queue: int) -> None:
    code = """
x = torch.randn(5, 7)
y = x.npu()
torch.testing.assert_close(everything(y).cpu(), x + NUMBER)
got = everything(y, y, [y, y[:1].expand(5, 7)], "four", False).cpu()
torch.testing.assert_close(got, 3 * x + x[:1] + NUMBER + 400 - 1000)
give(live())
"""
    assert not any(launch(code, TASK_QUEUE_ENABLE=queue).values())


def test_a_launch_line_passes_lists(launch: Callable[..., Any], queue: int) -> None:
    code = """
xs = [torch.arange(3.).npu(), torch.ones(2, 2).npu()]
doubled = [y.tolist() for more in (None, xs) for y in ops.test_doubled(xs, more)]
empty = [y.shape[0] for y in ops.test_doubled([xs[0][:0]])]
give([doubled, refusal(ops.test_doubled, xs, [xs[0], xs[0]]), empty])
"""
    doubled, refused, empty = launch(code, TASK_QUEUE_ENABLE=queue)
    assert doubled == [[0, 2, 4], [[2, 2], [2, 2]], [0, 3, 6], [[3, 3], [3, 3]]]
    assert refused.endswith("argument 'more[1]' must have the shape of 'xs[1]' [2, 2], got [3]")
    assert empty == [0]


def test_strides_and_offset_arrive(launch: Callable[..., Any]) -> None:
    code = "x = torch.arange(40.).npu().view(5, 8)[1:4, 2::3]\ngive(ops.test_layout(x).tolist())"
    assert launch(code) == [3, 2, 8, 3, 10]


def test_memory_arrives_as_a_plain_tensor_of_other_sizes(launch: Callable[..., Any]) -> None:
    code = """
x = torch.arange(40.).npu().view(5, 8)[1:4]
nz = torch_npu.empty_with_format((64, 32), dtype=torch.float16, device="npu", acl_format=29)
give([ops.test_raw_layout(x, [6, 4]).tolist(), ops.test_raw_layout(nz, [64, 32]).tolist()])
give(refusal(ops.test_raw_layout, x, [9, 4]))
"""
    of_plain_and_private, refused = launch(code)
    assert of_plain_and_private == [[6, 4, 4, 1, 8], [64, 32, 32, 1, 0]]
    assert "argument 1 is to be seen as [9, 4], which is more than its memory has" in refused


@pytest.mark.parametrize("caching", [True, False])
def test_workspace_and_strings_outlive_the_launch(
    launch: Callable[..., Any], queue: int, caching: bool
) -> None:
    # Without caching the workspace's memory is no more when its tensor is gone.
    variables = {} if caching else {"PYTORCH_NO_NPU_MEMORY_CACHING": 1}
    code = """
sim.delay("aclnnEverything", 0.02)
x = torch.zeros(1000).npu()
for _ in range(5):
    out = everything(x, maybe_text="x" * 3)
    others = [torch.full((1000,), 7.0).npu() for _ in range(3)]
    assert torch.equal(out.cpu(), torch.full((1000,), NUMBER + 300))
    assert all(torch.equal(other.cpu(), torch.full((1000,), 7.0)) for other in others)
give(sim.damage())
"""
    variables |= {"TASK_QUEUE_ENABLE": queue, "CUSTOM_PYPTO_SIM_POISON": 1}
    assert launch(code, **variables) == ""


def test_streams_do_not_mix(launch: Callable[..., Any], queue: int) -> None:
    code = """
sim.delay("aclnnEverything", 0.005)
streams = [torch.npu.Stream() for _ in range(2)]
outs = []
for i in range(6):
    with torch.npu.stream(streams[i % 2]):
        outs.append(everything(torch.full((50,), float(i)).npu()))
torch.npu.synchronize()
give([out[0].item() - NUMBER for out in outs])
"""
    assert launch(code, TASK_QUEUE_ENABLE=queue) == [0, 1, 2, 3, 4, 5]


def test_deterministic_setting_reaches_phase_1(launch: Callable[..., Any], queue: int) -> None:
    code = """
x = torch.ones(1).npu()
levels = []
for flag in (False, True, False):
    torch.use_deterministic_algorithms(flag)
    levels.append(ops.test_settings(x).item() // 1000)
give(levels)
"""
    assert launch(code, TASK_QUEUE_ENABLE=queue) == [0, 1, 0]


def test_deterministic_setting_reaches_every_device(launch: Callable[..., Any], queue: int) -> None:
    code = """
xs = [torch.ones(1).npu(device) for device in range(2)]
def levels(flag):
    torch.use_deterministic_algorithms(flag)
    return [ops.test_settings(x).item() // 1000 for x in xs]
give([levels(True), levels(False)])
"""
    results = launch(code, TASK_QUEUE_ENABLE=queue, CUSTOM_PYPTO_SIM_DEVICES=2)
    assert results == [[1, 1], [0, 0]]


def test_limits_of_the_stream_are_those_of_its_launches(
    launch: Callable[..., Any], queue: int
) -> None:
    code = """
x = torch.ones(1).npu()
stream = torch.npu.Stream()
torch.npu.set_stream_limit(stream, cube_num=7)
def seen(stream):
    with torch.npu.stream(stream):
        return [ops.test_settings(x).item() % 1000, ops.test_cores(x).item()]
results = [seen(stream), seen(torch.npu.default_stream())]
torch.npu.set_stream_limit(stream, cube_num=9)
give([*results, seen(stream)])
"""
    assert launch(code, TASK_QUEUE_ENABLE=queue) == [[7, 7], [24, 24], [9, 9]]


REFUSED = {
    "everything(ones, ones_of_1)": (
        "aclnnEverything: argument 2 is on npu:1, not on the NPU of the tensors before it"
    ),
    "everything(ones, ones.cpu())": "aclnnEverything: argument 2 is on cpu, not on an NPU",
    "ops.test_scaled_like(ones, ones_of_1)": (
        "test_scaled_like: argument 2 is on npu:1, not on the NPU of the tensors before it"
    ),
    "ops.test_scaled(ones.t(), 2.0)": (
        "test_scaled: argument 1 must be contiguous, got shape [6, 4] with strides [1, 6]"
    ),
    "ops.test_scaled(private, 2.0)": (
        "test_scaled: argument 1 is in a private storage format of the NPU, which the kernel cannot"
        " read; cast it with torch_npu.npu_format_cast(tensor, 2)"
    ),
}


@pytest.mark.parametrize("call", REFUSED)
def test_tensors_that_a_kernel_cannot_read_are_refused(
    launch: Callable[..., Any], call: str
) -> None:
    code = f"""
ones, ones_of_1 = torch.ones(4, 6, device="npu:0"), torch.ones(4, 6, device="npu:1")
private = torch_npu.empty_with_format((32, 32), device="npu", acl_format=29)
give(refusal(lambda: {call}))
"""
    assert launch(code, CUSTOM_PYPTO_SIM_DEVICES=2) == REFUSED[call]


@pytest.mark.parametrize("call", ["everything(x) - NUMBER", "ops.test_scaled(x, 1.0)"])
def test_a_launch_is_on_the_device_of_the_tensors(launch: Callable[..., Any], call: str) -> None:
    code = f"""
x = torch.arange(8.).npu(1)
got = {call}
give([got.device.index, got.tolist(), torch.npu.current_device()])
"""
    assert launch(code, CUSTOM_PYPTO_SIM_DEVICES=2) == [1, list(range(8)), 0]


@pytest.mark.parametrize(
    ("queue", "variables"),
    [
        (1, {"PYTORCH_NO_NPU_MEMORY_CACHING": 1}),
        (2, {"PYTORCH_NO_NPU_MEMORY_CACHING": 1}),
        (2, {}),
    ],
)
def test_failures_before_the_queue_raise_and_leak_nothing(
    launch: Callable[..., Any], queue: int, variables: dict[str, int]
) -> None:
    code = """
x = torch.ones(40).npu()
everything(x, x, [x, x])
before = live()
counts = {}
for kind in ("creation", "allocation"):
    k = 0
    while True:
        k += 1
        sim.fail(kind, k)
        text = refusal(everything, x, x, [x, x])
        if sim.disarm(kind):
            break
        assert text is not None, (kind, k)
        assert live() == before, (kind, k, text, live())
        torch.testing.assert_close(everything(x).cpu(), torch.full((40,), 1 + NUMBER))
    counts[kind] = k - 1
give(counts)
"""
    counts = launch(code, TASK_QUEUE_ENABLE=queue, **variables)
    # Six tensors, one in the list twice, the list itself, three arrays and a scalar. The result and
    # the workspace, unless torch_npu has kept memory for them.
    assert counts == {"creation": 10, "allocation": 2 if variables else 0}


def test_no_room_for_a_workspace_in_the_queue_is_reported_and_leaks_nothing(
    launch: Callable[..., Any],
) -> None:
    code = """
x = torch.ones(40).npu()
everything(x).cpu()
with torch.npu.stream(torch.npu.Stream()):
    x = torch.ones(40, device="npu")
    torch.npu.synchronize()
    sim.fail("allocation")  # the stream has room for the result, but has had no workspace yet
    for _ in range(100_000):
        text = refusal(everything, x)
        if text is not None:
            break
counts = sim.live_objects()
give([text, counts.get("executor", 0), counts.get("huge memory", 0)])
"""
    text, executors, arenas = launch(code, TASK_QUEUE_ENABLE=2)
    assert "an earlier launch failed: aclnnEverything: no memory for its workspace of 160 b" in text
    assert (executors, arenas) == (0, 0)


@pytest.mark.parametrize("switch", [0, 1])
def test_every_failing_call_raises_and_leaks_nothing(
    launch: Callable[..., Any], package: Path, switch: int
) -> None:
    code = """
x = torch.ones(40).npu()
everything(x, x, [x, x])
before = live(), sim.live_objects()["device memory"]
failures, k = [], 0
while True:
    k += 1
    sim.fail("call", k)
    try:
        everything(x, x, [x, x])
    except RuntimeError as error:
        failures.append(str(error))
    if sim.disarm("call"):
        break
    assert len(failures) == k, (k, failures)
    now = live(), sim.live_objects()["device memory"]
    assert now == before, (k, failures[-1], now)
    torch.testing.assert_close(everything(x).cpu(), torch.full((40,), 1 + NUMBER))
give(failures)
"""
    failures = launch(
        code,
        TASK_QUEUE_ENABLE=0,
        PYTORCH_NO_NPU_MEMORY_CACHING=1,
        **dict.fromkeys(FASTER, switch),
    )
    text = "\n".join(failures)
    for part in (
        "aclnnEverything: no memory for its workspace of 160 bytes: ",
        "aclnnEverything failed in phase 2 (aclnnEverything) with code 561000: ",
        f" (the kernel is {package}/op_api/lib/libcust_opapi.so, from a custom opp package)",
    ):
        assert part in text
    # An equal launch was before, so that with the cache there is no phase 1 to fail, nor to make
    # anything for.
    for part in (
        "aclnnEverything: argument 1 could not be made an aclTensor (aclCreateTensor): EZ9999: ",
        "could not be made an aclTensorList (aclCreateTensorList): EZ9999: ",
        "could not be made an aclIntArray (aclCreateIntArray): EZ9999: ",
        "could not be made an aclFloatArray (aclCreateFloatArray): EZ9999: ",
        "could not be made an aclBoolArray (aclCreateBoolArray): EZ9999: ",
        "could not be made an aclScalar (aclCreateScalar): EZ9999: ",
        "failed in phase 1 (aclnnEverythingGetWorkspaceSize) with code 561000: ",
    ):
        assert (part in text) == (switch == 0)


@pytest.mark.parametrize(("queue", "phase"), [(1, 2), (2, 2), (2, 1)])
def test_asynchronous_failure_is_reported_by_a_later_launch(
    launch: Callable[..., Any], queue: int, phase: int
) -> None:
    code = f"""
x = torch.ones(4).npu()
everything(x)
torch.npu.synchronize()
sim.fail("phase{phase}")
try:
    # The queue's thread fails meanwhile; some launch notices.
    for _ in range(100_000):
        everything(x)
except RuntimeError as error:
    give(str(error))
"""
    text = launch(code, TASK_QUEUE_ENABLE=queue)
    start = "aclnnEverything was not launched, because an earlier launch failed: aclnnEverything"
    symbol = "aclnnEverythingGetWorkspaceSize" if phase == 1 else "aclnnEverything"
    assert text.startswith(f"{start} failed in phase {phase} ({symbol}) with code 561000: ")


def test_capture_and_replay_with_changed_inputs(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(8).npu()
everything(x)
torch.npu.synchronize()
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    out = everything(everything(x))
x.fill_(5)
graph.replay()
torch.npu.synchronize()
give(out[0].item() - 2 * NUMBER)
"""
    assert launch(code, TASK_QUEUE_ENABLE=1) == 5


def test_direct_launch_does_not_overtake_queued_ops(launch: Callable[..., Any], queue: int) -> None:
    code = """
sim.delay("aclnnEverything", 0.01)
x = torch.arange(8.).npu()
torch.npu.synchronize()
for _ in range(5):
    got = ops.test_scaled(everything(x), 2.0)
    assert torch.equal(got.cpu(), (torch.arange(8.) + NUMBER) * 2)
"""
    launch(code, TASK_QUEUE_ENABLE=queue)


def test_direct_launch_honours_the_storage_offset(launch: Callable[..., Any]) -> None:
    code = "give(ops.test_scaled(torch.arange(8.).npu()[3:], 2.0).tolist())"
    assert launch(code) == [6, 8, 10, 12, 14]


def test_direct_launch_takes_other_names_for_the_plain_format(launch: Callable[..., Any]) -> None:
    code = """
x = torch_npu.npu_format_cast(torch.arange(16.).view(1, 2, 2, 4).npu(), 1)
assert torch_npu.get_npu_format(x) == 1
give(ops.test_scaled(x, 2.0).flatten().tolist())
"""
    assert launch(code) == [2.0 * i for i in range(16)]


def test_status_of_a_direct_launch_is_checked(launch: Callable[..., Any]) -> None:
    code = """
give(refusal(ops.test_scaled, torch.ones(13).npu(), 2.0))
"""
    text = launch(code, TASK_QUEUE_ENABLE=0)
    assert text.startswith("test_scaled: launching its kernel failed with code 507899: ")

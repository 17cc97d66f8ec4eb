"""What a launch passes to its kernel, and where and when the kernel runs."""

import os

import pytest
from custom_pypto_testing.verification.report import FASTER
from worker import Launch


def test_every_kind_of_argument_arrives(launch: Launch, queue: int) -> None:
    code = """
x = torch.randn(5, 7)
y = x.npu()
torch.testing.assert_close(everything(y).cpu(), x + NUMBER)
got = everything(y, y, [y, y[:1].expand(5, 7)], "four", False).cpu()
torch.testing.assert_close(got, 3 * x + x[:1] + NUMBER + 400 - 1000)
give(live())
"""
    assert not any(launch(code, TASK_QUEUE_ENABLE=queue).values())


SETUP = """
x = torch.arange(40.).npu().view(5, 8)
ones, ones_of_1 = torch.ones(4, 6, device="npu:0"), torch.ones(4, 6, device="npu:1")
private = torch_npu.empty_with_format((64, 32), dtype=torch.float16, device="npu", acl_format=29)
nhwc = torch_npu.npu_format_cast(torch.arange(16.).view(1, 2, 2, 4).npu(), 1)
assert torch_npu.get_npu_format(nhwc) == 1
"""
# A call, and its result, or how the text begins that refuses it.
CALLS: dict[str, list[int] | str] = {
    "ops.test_layout(x[1:4, 2::3])": [3, 2, 8, 3, 10],
    "ops.test_raw_layout(x[1:4], [6, 4])": [6, 4, 4, 1, 8],
    "ops.test_raw_layout(private, [64, 32])": [64, 32, 32, 1, 0],
    "ops.test_raw_layout(x[1:4], [9, 4])": (
        "aclnnLayout: argument 1 is to be seen as [9, 4], which is more than its memory has"
    ),
    "ops.test_scaled(x[0, 3:], 2.0)": [6, 8, 10, 12, 14],
    "ops.test_scaled(nhwc, 2.0)": [2 * i for i in range(16)],
    "everything(ones, ones_of_1)": (
        "aclnnEverything: argument 2 is on npu:1, not on the NPU of the tensors before it"
    ),
    "everything(ones, ones.cpu())": "aclnnEverything: argument 2 is on cpu, not on an NPU",
    "ops.test_scaled(ones, 2.0, ones_of_1)": (
        "test_scaled: argument 2 is on npu:1, not on the NPU of the tensors before it"
    ),
    "ops.test_scaled(ones.t(), 2.0)": (
        "test_scaled: argument 1 must be contiguous, got shape [6, 4] with strides [1, 6]"
    ),
    "ops.test_scaled(private, 2.0)": (
        "test_scaled: argument 1 is in a private storage format of the NPU, which the kernel cannot"
        " read; cast it with torch_npu.npu_format_cast(tensor, 2)"
    ),
    "ops.test_scaled(torch.ones(13).npu(), 2.0)": (
        "test_scaled: launching its kernel failed with code 507899: "
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_tensors_arrive_as_they_lie_or_are_refused(launch: Launch, call: str) -> None:
    code = f"""
{SETUP}
try:
    give({call}.flatten().tolist())
except RuntimeError as error:
    give(str(error))
"""
    given = launch(code, CUSTOM_PYPTO_SIM_DEVICES=2, TASK_QUEUE_ENABLE=0)
    expected = CALLS[call]
    assert given.startswith(expected) if isinstance(expected, str) else given == expected


@pytest.mark.parametrize("call", ["everything(x) - NUMBER", "ops.test_scaled(x, 1.0)"])
def test_a_launch_is_on_the_device_of_the_tensors(launch: Launch, call: str) -> None:
    code = f"""
x = torch.arange(8.).npu(1)
got = {call}
give([got.device.index, got.tolist(), torch.npu.current_device()])
"""
    assert launch(code, CUSTOM_PYPTO_SIM_DEVICES=2) == [1, list(range(8)), 0]


def test_a_launch_line_passes_lists(launch: Launch, queue: int) -> None:
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


@pytest.mark.parametrize("caching", [True, False])
def test_workspace_and_strings_outlive_the_launch(
    launch: Launch, queue: int, caching: bool
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


def test_deterministic_setting_reaches_every_device(launch: Launch, queue: int) -> None:
    code = """
xs = [torch.ones(1).npu(device) for device in range(2)]
def levels(flag):
    torch.use_deterministic_algorithms(flag)
    return [ops.test_settings(x).item() // 1000 for x in xs]
give([levels(False), levels(True), levels(False)])
"""
    results = launch(code, TASK_QUEUE_ENABLE=queue, CUSTOM_PYPTO_SIM_DEVICES=2)
    assert results == [[0, 0], [1, 1], [0, 0]]


def test_limits_of_the_stream_are_those_of_its_launches(launch: Launch, queue: int) -> None:
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


def test_direct_launch_does_not_overtake_queued_ops_as_a_launch_beside_the_queue_does(
    launch: Launch, queue: int
) -> None:
    code = """
x, seen = torch.arange(8.).npu(), torch.zeros(8).npu()
held = everything(x * 0)  # a first launch may wait for the queue
copy, stream = ctypes.CDLL("libascendcl.so").aclrtMemcpyAsync, torch.npu.current_stream().npu_stream
torch.npu.synchronize()
sim.delay("launch:aclnnEverything", 0.2)
out = everything(x)
to, of = (ctypes.c_void_p(each.data_ptr()) for each in (seen, out))
assert copy(to, ctypes.c_size_t(32), of, ctypes.c_size_t(32), 3, ctypes.c_void_p(stream)) == 0
scaled = ops.test_scaled(everything(x), 2.0)
give([torch.equal(each.cpu(), torch.arange(8.) + NUMBER) for each in (seen, scaled / 2)])
"""
    assert launch(code, TASK_QUEUE_ENABLE=queue) == [queue == 0, True]


RACES = int(os.environ.get("CUSTOM_PYPTO_TEST_RACES", "4"))
"""How many processes race; each has 8 threads."""

RACE = """
import threading
numbers = torch.ones(3, dtype=torch.long).npu()
xs = [torch.full((40,), float(value)).npu() for value in range(96)]
barrier, results = threading.Barrier(8), []
def use(number):
    calls = [
        lambda x: everything(x)[0].item() - NUMBER,
        lambda x: ops.test_number(numbers, number).tolist(),
        lambda x: ops.test_opposite(numbers, number).tolist(),
        lambda x: ops.test_scaled(x, 3.0)[39].item(),
    ]
    barrier.wait()
    # Each op three times, with other tensors.
    for place in range(number, number + 12):
        value = place * 8 % 96 + number
        expected = [value, 3 * [number], 3 * [-number], 3 * value]
        try:
            seen = calls[place % 4](xs[value])
        except BaseException as error:
            seen = repr(error)
        results.append([seen, expected[place % 4]])
def race():
    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
give([results, phase_1_runs(race)[1], live()])
"""


def test_threads_that_race_for_the_first_launch_get_their_own_results(
    launch: Launch, queue: int
) -> None:
    # Each thread has a cache for its three ops with a phase 1; the queue's one thread runs two of
    # these with eight numbers.
    with_cache = 1 + 2 * 8 if queue == 2 else 3 * 8
    for race in range(RACES):
        switches = dict.fromkeys(FASTER, race % 2)
        results, phase_1_runs, live = launch(RACE, TASK_QUEUE_ENABLE=queue, **switches)
        assert len(results) == 96
        assert [seen for seen, _ in results] == [expected for _, expected in results]
        assert phase_1_runs == (with_cache if race % 2 else 3 * 3 * 8)
        assert not any(live.values())

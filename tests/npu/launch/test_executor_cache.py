"""Launches that find the executor of an equal, earlier launch in CANN's cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from custom_pypto_testing.verification.report import FASTER


@pytest.fixture
def launch(launch: Callable[..., Any]) -> Callable[..., Any]:
    """Run code with the switches of core on."""
    return partial(launch, **dict.fromkeys(FASTER, "1"))


def test_an_equal_launch_computes_with_its_own_tensors(
    launch: Callable[..., Any], queue: int
) -> None:
    code = """
kept, runs = [], []
for value in (1.0, 2.0, 3.0):
    x, bias, one, two = (torch.full((5, 7), value * 10**n).npu() for n in range(4))
    out, count = phase_1_runs(lambda: everything(x, bias, [one, two]))
    assert torch.equal(out.cpu(), torch.full((5, 7), value * 1111 + NUMBER)), (value, out)
    kept.append((x, bias, one, two, out))
    runs.append(count)
# The first results are where they were.
assert [out[0, 0].item() - NUMBER for *_, out in kept] == [1111, 2222, 3333]
give([runs, live(), sim.damage()])
"""
    runs, live, damage = launch(code, TASK_QUEUE_ENABLE=queue, CUSTOM_PYPTO_SIM_POISON=1)
    assert runs == [1, 0, 0]
    assert not any(live.values())
    assert damage == ""


def test_without_the_cache_every_launch_runs_phase_1(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(3).npu()
give([phase_1_runs(lambda: everything(x))[1] for _ in range(2)])
"""
    assert launch(code, CUSTOM_PYPTO_SIM_EXECUTOR_CACHE=0) == [1, 1]


# Launches, and what they add to the result of everything(ones).
DIFFERENCES = {
    "everything(narrow)": 1,
    "everything(doubles)": 1,
    "everything(ones, ones)": 2,
    "everything(ones, None, [ones])": 2,
    "everything(ones, None, [], 'abcd')": 401,
    "everything(ones, flag=False)": -999,
    "given(text='abcd')": 11,
    "given(numbers=[1, 2, 3])": 4,
    "given(reals=[0.5, 2.5])": 2,
    "given(flags=[True, True, True])": 10001,
    "given(real=2.5)": 1.25,
    "given(number=8)": 2,
    "given(dtype=torch.float16)": -99999,
    "given(scalar=0.5)": 1.25,
}


def test_a_launch_that_differs_in_anything_runs_phase_1(launch: Callable[..., Any]) -> None:
    code = """
narrow = torch.ones(8, 6).npu()
ones, doubles = torch.ones(6, 8).npu(), torch.ones(6, 8).double().npu()
def given(text="abc", numbers=[1, 2], reals=[0.5, 1.5], flags=[True, False, True], real=2.25,
          number=7, dtype=torch.bfloat16, scalar=0.25):
    return ops.test_everything(ones, None, [], text, None, numbers, reals, flags, real, number,
                               True, dtype, scalar)
phase_1_runs(lambda: everything(ones))
assert phase_1_runs(given)[1] == 0  # the same, spelt otherwise
def twice(launch):
    (first, one), (again, other) = phase_1_runs(launch), phase_1_runs(launch)
    assert torch.equal(first.cpu(), again.cpu())
    return [one, other, first.flatten()[0].item() - NUMBER]
"""
    code += f"give([{', '.join(f'twice(lambda: {each})' for each in DIFFERENCES)}])"
    assert dict(zip(DIFFERENCES, launch(code), strict=True)) == {
        name: [1, 0, difference] for name, difference in DIFFERENCES.items()
    }


def test_other_strides_and_offsets_run_phase_1(launch: Callable[..., Any]) -> None:
    code = """
x = torch.arange(48.).npu().view(6, 8)
views = [x[1:4, 2:5], x[1:4, 1:7:2], x[2:5, 2:5], x[1:4, 2:5].t(), x.t()[2:5, 1:4]]
give([phase_1_runs(lambda: ops.test_layout(view))[1] for view in views * 2])
give([ops.test_layout(view).tolist() for view in views])
"""
    runs, layouts = launch(code)
    # The last two views are the same one.
    assert runs == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert layouts == [
        [3, 3, 8, 1, 10],
        [3, 3, 8, 2, 9],
        [3, 3, 8, 1, 18],
        [3, 3, 1, 8, 10],
        [3, 3, 1, 8, 10],
    ]


def test_a_cached_launch_reads_where_its_tensors_begin(launch: Callable[..., Any]) -> None:
    code = """
results = []
for start in (0., 100.):
    x = torch.arange(start, start + 12).npu()
    out, count = phase_1_runs(lambda: everything(x[4:8]))
    results.append([count, (out - NUMBER).tolist()])
give(results)
"""
    assert launch(code) == [[1, [4, 5, 6, 7]], [0, [104, 105, 106, 107]]]


MADE = """
def made(acl_format, *shape):
    return torch_npu.empty_with_format(shape, dtype=torch.float16, device="npu",
                                       acl_format=acl_format)
"""
# Setup, then what is launched with `one` and with `other`.
PAIRS = {
    "the size of the storage": (
        "one, other = torch.ones(4).npu(), torch.ones(8).npu()[:4]",
        "everything(each)",
    ),
    "the last of a long list": (
        "one, other = torch.ones(3).npu(), torch.ones(2, 3).npu()[0]",
        "everything(one, None, [one] * 39 + [each])",
    ),
    "the length of a long list": (
        "x, one, other = torch.ones(3).npu(), 40, 38",
        "everything(x, None, [x] * each)",
    ),
    "the sizes that memory is given with": (
        "x, one, other = torch.ones(6, 4).npu(), [4, 6], [2, 12]",
        "ops.test_raw_layout(x, each)",
    ),
    "the storage format": (
        MADE
        + """
one, other = made(2, 32, 32), made(29, 32, 32)
assert one.stride() == other.stride()
assert one.untyped_storage().nbytes() == other.untyped_storage().nbytes()
""",
        "ops.test_layout(each)",
    ),
    "the shape of a private format": (
        MADE + "one, other = made(29, 64, 32), made(29, 32, 64).view(64, 32)",
        "ops.test_layout(each)",
    ),
}


@pytest.mark.parametrize(("setup", "call"), PAIRS.values(), ids=PAIRS)
def test_a_launch_that_differs_in_this_runs_phase_1(
    launch: Callable[..., Any], setup: str, call: str
) -> None:
    runs = f"give([phase_1_runs(lambda: {call})[1] for each in [one, other] * 2])"
    assert launch(f"{setup}\n{runs}") == [1, 1, 0, 0]


def test_kernels_with_equal_arguments_are_distinguished(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(1, dtype=torch.long).npu()
results = [phase_1_runs(lambda: op(x, 7)) for op in [ops.test_number, ops.test_opposite] * 3]
give([[count, out.item()] for out, count in results])
"""
    assert launch(code) == [[1, 7], [1, -7]] + [[0, 7], [0, -7]] * 2


def test_none_is_refused_whatever_number_was_launched_before(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(1, dtype=torch.long).npu()
for number in range(128):
    ops.test_number(x, number)
give(refusal(ops.test_maybe_number, x, None))
"""
    assert "argument 1 is None, for which aclnn has no number" in launch(code)


def test_other_cores_for_the_stream_run_phase_1(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(1).npu()
def runs():
    return phase_1_runs(lambda: ops.test_settings(x))[1]
with torch.npu.stream(torch.npu.Stream()) as stream:
    results = [runs(), runs()]
    for limit in ({"cube_num": 7}, {"vector_num": 9}):
        torch.npu.set_stream_limit(torch.npu.current_stream(), **limit)
        results += [runs(), runs()]
give(results)
"""
    assert launch(code, TASK_QUEUE_ENABLE=0) == [1, 0] * 3


def test_names_for_the_same_format_are_one(launch: Callable[..., Any]) -> None:
    code = """
nd = torch.ones(6, 20).npu()
nchw = torch.ones(2, 3, 4, 5).npu().view(6, 20)
assert torch_npu.get_npu_format(nd) != torch_npu.get_npu_format(nchw)
give([phase_1_runs(lambda: everything(x))[1] for x in (nd, nchw)])
"""
    assert launch(code) == [1, 0]


def test_tensors_that_share_their_storage_run_phase_1(launch: Callable[..., Any]) -> None:
    code = """
x, y = torch.ones(4).npu(), torch.full((4,), 5.0).npu()
results = [phase_1_runs(lambda: everything(x, bias)) for bias in (x, y, x, y)]
give([[count, out[0].item() - NUMBER] for out, count in results])
results = [phase_1_runs(lambda: everything(x, y, [y, last])) for last in (x, y, x, y)]
give([[count, out[0].item() - NUMBER] for out, count in results])
"""
    of_neighbours, of_others = launch(code)
    assert of_neighbours == [[1, 2], [1, 6], [0, 2], [0, 6]]
    assert of_others == [[1, 12], [1, 16], [0, 12], [0, 16]]


def test_each_stream_has_executors_of_its_own(launch: Callable[..., Any]) -> None:
    code = """
streams = [torch.npu.Stream() for _ in range(2)]
def on(stream, value):
    with torch.npu.stream(stream):
        return everything(torch.full((50,), value).npu())
give([phase_1_runs(lambda: on(streams[i % 2], float(i)))[1] for i in range(4)])
"""
    assert launch(code) == [1, 1, 0, 0]


def test_each_thread_has_executors_of_its_own(launch: Callable[..., Any], queue: int) -> None:
    code = """
import threading
wrong = []
def work(number):
    for i in range(50):
        x = torch.full((300,), float(number * 100 + i)).npu()
        if not torch.equal(everything(x).cpu(), x.cpu() + NUMBER):
            wrong.append((number, i))
def together():
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
counted = phase_1_runs(together)[1]
give([wrong, counted, live()])
"""
    wrong, counted, live = launch(code, TASK_QUEUE_ENABLE=queue)
    assert wrong == []
    # Where phase 1 is for the queue, its one thread runs it for all.
    assert counted == (1 if queue == 2 else 4)
    assert not any(live.values())


def test_a_launch_that_failed_in_phase_2_is_not_cached(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(4).npu()
def failing():
    sim.fail("phase2")
    return "failed in phase 2" in refusal(everything, x)
give([phase_1_runs(each)[1] for each in (failing, lambda: everything(x), lambda: everything(x))])
give([list(phase_1_runs(failing)), phase_1_runs(lambda: everything(x))[1], live()])
"""
    first, (of_a_found_one, after, live) = launch(code, TASK_QUEUE_ENABLE=0)
    assert first == [1, 1, 0]
    assert of_a_found_one == [True, 0]
    assert after == 0
    assert not any(live.values())


def test_a_launch_that_failed_in_phase_1_is_not_cached(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(4).npu()
sim.fail("phase1")
assert "failed in phase 1" in refusal(everything, x)
give([phase_1_runs(lambda: everything(x))[1] for _ in range(2)])
"""
    assert launch(code) == [1, 0]


def test_a_captured_graph_replays_cached_launches(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(8).npu()
def capture():
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=stream):
        out = everything(everything(x))
    return graph, out
stream = torch.npu.Stream()
with torch.npu.stream(stream):
    everything(x)
(graph, out), counted = phase_1_runs(capture)
results = [counted]
for value in (5, 6):
    x.fill_(value)
    # Neither captured nor with the graph's tensors, but found in the same cache.
    other = everything(torch.full((8,), 70.0).npu())
    graph.replay()
    torch.npu.synchronize()
    results += [out[0].item() - 2 * NUMBER, other[0].item() - NUMBER]
give(results)
"""
    assert launch(code, TASK_QUEUE_ENABLE=1) == [0, 5, 70, 6, 70]

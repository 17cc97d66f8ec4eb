"""Launches that find the executor of an equal, earlier launch in CANN's cache."""

from functools import partial

import pytest
from custom_pypto_testing.verification.report import FASTER
from worker import Launch


@pytest.fixture
def launch(launch: Launch) -> Launch:
    """Run code with the switches of core on."""
    return partial(launch, **dict.fromkeys(FASTER, "1"))


def test_an_equal_launch_computes_with_its_own_tensors(launch: Launch, queue: int) -> None:
    code = """
kept, runs = [], []
for value in (1.0, 2.0, 3.0):
    rows = [torch.zeros(1, 7), torch.full((4, 7), value)]
    x, bias, one, two = (torch.cat(rows).mul(10**n).npu() for n in range(4))
    out, count = phase_1_runs(lambda: everything(x[1:], bias[1:], [one[1:], two[1:]]))
    assert torch.equal(out.cpu(), 1111 * rows[1] + NUMBER), (value, out)
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


MADE = """
def made(acl_format, *shape):
    return torch_npu.empty_with_format(shape, dtype=torch.float16, device="npu",
                                       acl_format=acl_format)
"""
# What differs, a setup, and launches that differ in this.
DIFFERENT = {
    "arguments": (
        """
narrow = torch.ones(8, 6).npu()
ones, doubles = torch.ones(6, 8).npu(), torch.ones(6, 8).double().npu()
def given(text="abc", numbers=[1, 2], reals=[0.5, 1.5], flags=[True, False, True], real=2.25,
          number=7, dtype=torch.bfloat16, scalar=0.25):
    return ops.test_everything(ones, None, [], text, None, numbers, reals, flags, real, number,
                               True, dtype, scalar)
""",
        [
            *("everything(ones)", "everything(narrow)", "everything(doubles)"),
            *("everything(ones, ones)", "everything(ones, None, [ones])"),
            *("everything(ones, None, [], 'abcd')", "everything(ones, flag=False)"),
            *("given(text='abcd')", "given(numbers=[1, 2, 3])", "given(reals=[0.5, 2.5])"),
            *("given(flags=[True, True, True])", "given(real=2.5)", "given(number=8)"),
            *("given(dtype=torch.float16)", "given(scalar=0.5)"),
        ],
    ),
    "strides and offset": (
        "x = torch.arange(48.).npu().view(6, 8)",
        [
            f"ops.test_layout({view})"
            for view in ("x[1:4, 2:5]", "x[1:4, 1:7:2]", "x[2:5, 2:5]", "x[1:4, 2:5].t()")
        ],
    ),
    "the size of the storage": (
        "one, other = torch.ones(4).npu(), torch.ones(8).npu()[:4]",
        ["everything(one)", "everything(other)"],
    ),
    "a long list": (
        "one, other = torch.ones(3).npu(), torch.ones(2, 3).npu()[0]",
        [f"everything(one, None, {rest})" for rest in ("[one] * 40", "[one] * 39 + [other]")]
        + ["everything(one, None, [one] * 38)"],
    ),
    "the sizes that memory is given with": (
        "x = torch.ones(6, 4).npu()",
        ["ops.test_raw_layout(x, [4, 6])", "ops.test_raw_layout(x, [2, 12])"],
    ),
    "the storage format": (
        MADE
        + """
one, other = made(2, 32, 32), made(29, 32, 32)
assert one.stride() == other.stride()
assert one.untyped_storage().nbytes() == other.untyped_storage().nbytes()
""",
        ["ops.test_layout(one)", "ops.test_layout(other)"],
    ),
    "the shape of a private format": (
        MADE + "one, other = made(29, 64, 32), made(29, 32, 64).view(64, 32)",
        ["ops.test_layout(one)", "ops.test_layout(other)"],
    ),
    "the kernel": (
        "x = torch.ones(1, dtype=torch.long).npu()",
        ["ops.test_number(x, 7)", "ops.test_opposite(x, 7)"],
    ),
    "whether algorithms are deterministic": (
        """
x = torch.ones(1).npu()
def settings(is_deterministic):
    torch.use_deterministic_algorithms(is_deterministic)
    return ops.test_settings(x)
""",
        ["settings(False)", "settings(True)"],
    ),
    "which tensors share their storage": (
        "x, y = torch.ones(4).npu(), torch.full((4,), 5.0).npu()",
        [
            *("everything(x, x)", "everything(x, y)"),
            *("everything(x, y, [y, x])", "everything(x, y, [y, y])"),
        ],
    ),
    "the stream, and the cores that it may use": (
        """
x, streams = torch.ones(1).npu(), [torch.npu.Stream() for _ in range(2)]
def on(stream, cubes, vectors):
    with torch.npu.stream(stream):
        torch.npu.set_stream_limit(stream, cube_num=cubes, vector_num=vectors)
        return ops.test_settings(x)
""",
        [
            *("on(streams[0], 8, 16)", "on(streams[1], 8, 16)"),
            *("on(streams[0], 7, 16)", "on(streams[0], 8, 9)"),
        ],
    ),
}


@pytest.mark.parametrize(("setup", "calls"), DIFFERENT.values(), ids=DIFFERENT)
def test_launches_that_differ_run_phase_1_once_each(
    launch: Launch, setup: str, calls: list[str]
) -> None:
    code = f"""
{setup}
launches = [{", ".join(f"lambda: {call}" for call in calls)}]
first, again = ([phase_1_runs(each) for each in launches] for _ in range(2))
same = [one.cpu().equal(other.cpu()) for (one, _), (other, _) in zip(first, again)]
give([[[count for _, count in each] for each in (first, again)], same])
"""
    counts, same = launch(code, TASK_QUEUE_ENABLE=0)
    assert counts == [[1] * len(calls), [0] * len(calls)]
    assert all(same)


# Why launches are equal, a setup, and the launches.
EQUAL = {
    "views of the same elements": (
        "x = torch.arange(48.).npu().view(6, 8)",
        ["ops.test_layout(x[1:4, 2:5].t())", "ops.test_layout(x.t()[2:5, 1:4])"],
    ),
    "names for the same format": (
        """
nd = torch.ones(6, 20).npu()
nchw = torch.ones(2, 3, 4, 5).npu().view(6, 20)
assert torch_npu.get_npu_format(nd) != torch_npu.get_npu_format(nchw)
""",
        ["everything(nd)", "everything(nchw)"],
    ),
}


@pytest.mark.parametrize(("setup", "calls"), EQUAL.values(), ids=EQUAL)
def test_equal_launches_run_phase_1_once(launch: Launch, setup: str, calls: list[str]) -> None:
    counts = ", ".join(f"phase_1_runs(lambda: {call})[1]" for call in calls)
    assert launch(f"{setup}\ngive([{counts}])") == [1, 0]


def test_none_is_refused_whatever_number_was_launched_before(launch: Launch) -> None:
    code = """
x = torch.ones(1, dtype=torch.long).npu()
for number in range(128):
    ops.test_number(x, number)
give(refusal(ops.test_number, x, None))
"""
    assert "argument 1 is None, for which aclnn has no number" in launch(code)


def test_a_launch_that_failed_is_not_cached(launch: Launch) -> None:
    code = """
x = torch.ones(4).npu()
def failing(phase):
    sim.fail("aclnnEverything" + ("GetWorkspaceSize" if phase == 1 else ""))
    assert f"failed in phase {phase}" in refusal(everything, x)
phases = [1, 2, 0, 2, 0]  # 0: none fails
give([[phase_1_runs(lambda: failing(phase) if phase else everything(x))[1] for phase in phases],
      live()])
"""
    runs, live = launch(code, TASK_QUEUE_ENABLE=0)
    # A launch that was found and then fails leaves what was found.
    assert runs == [1, 1, 1, 0, 0]
    assert not any(live.values())


def test_a_captured_graph_replays_cached_launches(launch: Launch) -> None:
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

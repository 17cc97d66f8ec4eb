"""Calls of CANN that fail in a launch, one at a time: every function, in every position."""

import os
import re
from pathlib import Path

import pytest
from custom_pypto_testing.verification.report import FASTER
from worker import Launch

HEADERS = Path("core/src/custom_pypto/core/include/custom_pypto/npu")
ROOT = Path(__file__).resolve().parents[3]


def find_functions() -> list[str]:
    """Return the functions of CANN that launches call and that can fail.

    Those are the ones with a result: a status, an object, an answer.
    """
    found = []
    for header in ("cann.h", "executor_cache.h"):
        text = (ROOT / HEADERS / header).read_text(encoding="utf-8")
        types = dict.fromkeys(
            re.findall(r"^  AclDestroy (destroy_\w+);", text, re.MULTILINE), "AclStatus"
        )
        pointers = re.findall(r"^  (\w[\w *]*?) ?\(\*(\w+)\)\(", text, re.MULTILINE)
        types |= {field: result for result, field in pointers}
        finds = re.findall(r'find_(?:in_aclnn|loaded)\((?:"[\w.]+", )?"(\w+)", \w+\.(\w+)\)', text)
        assert {field for _, field in finds} == types.keys()
        # Without the text of an error there is only less to say.
        found += [name for name, field in finds if types[field] not in ("void", "const char*")]
    return found


FUNCTIONS = find_functions()
CREATED = [name for name in FUNCTIONS if name.startswith("aclCreate")]

EACH_FAILS = """
x = torch.ones(40).npu()
def launch():
    return everything(x, x, [x, x])
def is_right(out):
    return torch.equal(out.cpu(), torch.full((40,), 4 + NUMBER))
launch()
before, refused, passed = live(), {{}}, {{}}
for name in {functions}:
    leaves = name.startswith("aclDestroy")
    for nth in range(1, 100):
        if leaves:
            before = live()
        sim.fail(name, nth)
        out, text = None, None
        try:
            out = launch()
        except RuntimeError as error:
            text = str(error)
        torch.npu.synchronize()
        if sim.disarm():
            break
        if text is None:
            assert is_right(out), (name, nth)
            passed[name] = nth
        else:
            assert text.startswith("aclnnEverything: ") and f"({{name}}): EZ9999" in text, text
            refused[name] = nth
        out = None
        # An object that CANN refuses to destroy is CANN's.
        assert leaves or live() == before, (name, nth, live(), before)
        assert is_right(launch()), (name, nth)
give([refused, passed, sim.damage()])
"""


@pytest.mark.parametrize("is_cached", [False, True])
def test_launch_is_right_or_refused_whichever_function_fails(
    launch: Launch, queue: int, is_cached: bool
) -> None:
    variables = {"TASK_QUEUE_ENABLE": queue, **(dict.fromkeys(FASTER, "1") if is_cached else {})}
    refused, passed, damage = launch(EACH_FAILS.format(functions=FUNCTIONS), **variables)
    assert damage == ""
    # A launch that is found in the cache makes no objects, but with TASK_QUEUE_ENABLE=2.
    is_made = not is_cached or queue == 2
    made = {"Tensor": 5, "Scalar": 1, "IntArray": 1, "FloatArray": 1, "BoolArray": 1}
    made = {f"aclCreate{kind}": count for kind, count in {**made, "TensorList": 1}.items()}
    assert refused == (made if is_made else {})
    others = set(FUNCTIONS) - set(CREATED)
    # Nothing fails, so that no executor is destroyed but by phase 2.
    others.remove("aclDestroyAclOpExecutor")
    if not is_made:
        others -= {name for name in others if name.startswith("aclDestroy")}
    # Phase 1 needs an arena; the rest is asked for the cache.
    others -= (
        {"InitHugeMemThreadLocal"}
        if is_cached
        else {"CanUsePTACache", "PTAFindExecCache", "aclrtGetResInCurrentThread"}
    )
    assert passed.keys() == others


PHASE_1, PHASE_2 = "aclnnEverythingGetWorkspaceSize", "aclnnEverything"
# Functions, and the text of the last call that fails.
TEXTS = {
    PHASE_1: f"failed in phase 1 ({PHASE_1}) with code 561000: ",
    PHASE_2: f"failed in phase 2 ({PHASE_2}) with code 561000: ",
    "aclrtMalloc": "no memory for its workspace of 160 bytes: ",
}


@pytest.mark.parametrize(
    ("function", "queue", "switch"),
    [(PHASE_1, 0, 0), (PHASE_2, 0, 0), (PHASE_2, 0, 1), *(("aclrtMalloc", n, 0) for n in (1, 2))],
)
def test_a_failing_call_leaks_nothing(
    launch: Launch, package: Path, function: str, queue: int, switch: int
) -> None:
    code = f"""
x = torch.ones(40).npu()
everything(x, x, [x, x])
before = live(), sim.live_objects()["device memory"]
failures, k = [], 0
while True:
    k += 1
    sim.fail({function!r}, k)
    text = refusal(everything, x, x, [x, x])
    if sim.disarm():
        break
    failures.append(text)
    now = live(), sim.live_objects()["device memory"]
    assert text is not None and now == before, (k, text, now)
    torch.testing.assert_close(everything(x).cpu(), torch.full((40,), 1 + NUMBER))
give(failures)
"""
    failures = launch(
        code,
        TASK_QUEUE_ENABLE=queue,
        PYTORCH_NO_NPU_MEMORY_CACHING=1,
        **dict.fromkeys(FASTER, switch),
    )
    # The result is allocated before the workspace.
    assert len(failures) == (2 if function == "aclrtMalloc" else 1)
    assert TEXTS[function] in failures[-1]
    library = f" (the kernel is {package}/op_api/lib/libcust_opapi.so, from a custom opp package)"
    assert (library in failures[-1]) == (function != "aclrtMalloc")


def test_no_room_for_a_workspace_in_the_queue_leaks_nothing(launch: Launch) -> None:
    code = """
x = torch.ones(40).npu()
everything(x).cpu()
with torch.npu.stream(torch.npu.Stream()):
    x = torch.ones(40, device="npu")
    torch.npu.synchronize()
    sim.fail("aclrtMalloc")  # the stream has room for the result, but has had no workspace yet
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


def test_an_allocation_that_fails_in_a_capture_is_named(launch: Launch) -> None:
    # torch_npu makes an ordinary allocation again, but none while it captures.
    code = """
x = torch.ones(1).npu()
with torch.npu.graph(torch.npu.NPUGraph()):
    sim.fail("aclrtMalloc")
    give(refusal(ops.test_settings, x))
"""
    text = launch(code, TASK_QUEUE_ENABLE=1)
    assert text.startswith("test_settings: cannot allocate the output 'out' [1]: ")


@pytest.mark.parametrize(("queue", "phase"), [(1, 2), (2, 2), (2, 1)])
def test_asynchronous_failure_is_reported_by_a_later_launch(
    launch: Launch, queue: int, phase: int
) -> None:
    symbol = PHASE_1 if phase == 1 else PHASE_2
    code = f"""
x = torch.ones(4).npu()
everything(x)
torch.npu.synchronize()
sim.fail({symbol!r})
try:
    # The queue's thread fails meanwhile; some launch notices.
    for _ in range(100_000):
        everything(x)
except RuntimeError as error:
    give(str(error))
"""
    text = launch(code, TASK_QUEUE_ENABLE=queue)
    start = "aclnnEverything was not launched, because an earlier launch failed: aclnnEverything"
    assert text.startswith(f"{start} failed in phase {phase} ({symbol}) with code 561000: ")


def test_launches_with_an_unknown_number_of_cores_do_not_share_an_executor(launch: Launch) -> None:
    code = """
x = torch.ones(1).npu()
seen = []
for cores in (7, 9):
    torch.npu.set_stream_limit(torch.npu.current_stream(), cube_num=cores)
    sim.fail("aclrtGetResInCurrentThread")
    seen.append(ops.test_settings(x).item() % 1000)
    assert not sim.disarm()
give(seen)
"""
    assert launch(code, TASK_QUEUE_ENABLE=0, **dict.fromkeys(FASTER, "1")) == [7, 9]


def test_threads_that_fail_together_each_get_their_own_text(launch: Launch) -> None:
    code = """
import threading
x, wrong, barrier = torch.ones(1, dtype=torch.long).npu(), [], threading.Barrier(4)
def fail(number):
    barrier.wait()
    for i in range(50):
        text = refusal(ops.test_number, x, -(number * 1000 + i)) or ""
        if f"refuses the number {-(number * 1000 + i)} " not in f"{text.splitlines()[0]} ":
            wrong.append(text)
threads = [threading.Thread(target=fail, args=(number,)) for number in range(1, 5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
give([wrong, ops.test_number(x, 5).item(), live()])
"""
    wrong, after, live = launch(code, TASK_QUEUE_ENABLE=1)
    assert (wrong, after) == ([], 5)
    assert not any(live.values())


# What Python does at exit, then C's handlers and static destructors.
ENDS = """
import atexit
sys.stdout.flush()
atexit._run_exitfuncs()
ctypes.CDLL(None).exit(0)
"""


def test_a_process_ends_after_launches_on_a_lost_device(launch: Launch, queue: int) -> None:
    code = """
x = torch.ones(40).npu()
everything(x)
torch.npu.synchronize()
sim.lose_device()
def launch_and_wait():
    everything(x)
    torch.npu.synchronize()
give([refusal(launch_and_wait) for _ in range(3)])
give(sim.live_objects().get("executor", 0))
"""
    texts, executors = launch(code + ENDS, TASK_QUEUE_ENABLE=queue)
    # With a queue, torch_npu reports the launch that failed once, at any later call.
    reports = [text for text in texts if queue and "operator name is aclnnEverything" in text]
    assert len(reports) <= 1
    assert all("device 0 is lost" in text for text in texts if text not in reports)
    assert executors == 0


def test_process_ends_with_launches_in_the_queue(launch: Launch, queue: int) -> None:
    code = """
sim.delay("aclnnEverything", 0.01)
sim.delay("launch:aclnnEverything", 0.01)
x = torch.ones(40).npu()
kept = [everything(x) for _ in range(20)]
give(1)
"""
    assert launch(code + ENDS, TASK_QUEUE_ENABLE=queue) == 1


@pytest.mark.parametrize("switch", [0, 1])
def test_memory_stays_flat_over_many_launches(launch: Launch, switch: int) -> None:
    # A leak of launches grows in every round; memory that threads keep for reuse does not.
    count = int(os.environ.get("CUSTOM_PYPTO_TEST_LAUNCHES", "20000")) // 5
    code = f"""
import resource
x = torch.ones(4).npu()
def resident():
    for _ in range({count}):
        everything(x, x, [x])
    torch.npu.synchronize()
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()
sizes = [resident() for _ in range(5)]
give([live(), [after - before for before, after in zip(sizes, sizes[1:])]])
"""
    live, grown = launch(code, **dict.fromkeys(FASTER, switch))
    print("bytes that each round of", count, "launches added:", grown)
    assert not any(live.values())
    assert min(grown) < count * 32, grown  # malloc gives no fewer bytes

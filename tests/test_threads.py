"""Threads whose first import, first look-up and first call of an op are all at once."""

import json
import os

from fork_server import ForkServer

RACES = int(os.environ.get("CUSTOM_PYPTO_TEST_RACES", "5"))
"""How many processes race; each has 8 threads."""

# An op of torch has a lock of its own for its first call, which a fork does not wait for: so torch
# makes the inputs before there are threads.
CALLS = """
import importlib, json, threading, torch
barrier, results = threading.Barrier(8), []
counts, ones = torch.arange(3), torch.ones(3, dtype=torch.long)
query = torch.arange(2 * 64 * 128).remainder(13).bfloat16().view(1, 2, 64, 128)
keys = torch.arange(9 * 128).remainder(7).bfloat16().view(1, 9, 1, 128)
weights = torch.ones(1, 2, 64, dtype=torch.bfloat16)
def add():
    return torch.ops.custom_pypto.add_custom(counts, ones)
def index():
    return torch.ops.custom_pypto.npu_lightning_indexer_pto(
        query, keys, weights, layout_query="BSND", layout_key="BSND", sparse_count=4, sparse_mode=3)
"""
# Each thread begins with another import, and calls the ops in another order.
RACE = """
def use(number):
    first = ("custom_pypto.core", "custom_pypto_add_custom", "custom_pypto_plugin",
             "custom_pypto_lightning_indexer", "custom_pypto_testing")
    barrier.wait()
    try:
        importlib.import_module(first[number % len(first)])
        core = importlib.import_module("custom_pypto.core")
        calls = (add, index) if number % 2 else (index, add)
        given = {call.__name__: call().tolist() for call in calls}
        plugins = [(each.name, each.status) for each in core.plugins()]
        ops = [(each.name, each.plugin, each.dispatch_keys) for each in core.ops()]
        results.append([sorted(given.items()), plugins, ops])
    except BaseException as error:
        results.append(repr(error))
threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(results))
"""


def test_threads_that_race_for_the_first_use_see_the_same_plugins_and_results(
    server: ForkServer,
) -> None:
    seen = set()
    for _ in range(RACES):
        done = server.run(CALLS + RACE, [], {})
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)
        assert len(results) == 8
        seen |= {json.dumps(each) for each in results}
    assert len(seen) == 1, seen
    (given, plugins, _) = json.loads(seen.pop())
    assert dict(given)["add"] == [1, 2, 3]
    assert {status for _, status in plugins} == {"loaded"}


# Before a line of ours has run, a fork leaves a begun import to its child, as with any module: so
# `fork_locks` is there first. OpenMP's threads are not in a child, as with torch's own kernels.
FORKS = """
import faulthandler, os, random, time
import custom_pypto_contract.fork_locks
def race(number):
    barrier.wait(60)
    importlib.import_module("custom_pypto.core").load_new()
    for call in ((add, index) if number % 2 else (index, add)): call()
    getattr(torch.ops.custom_pypto, "absent", None)
torch.set_num_threads(1)
threads = [threading.Thread(target=race, args=(number,)) for number in range(7)]
for thread in threads: thread.start()
barrier.wait(60)
statuses = []
for number in range(10):
    for _ in range(random.randrange(2000)): pass
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(100, exit=True)
        try:
            core = importlib.import_module("custom_pypto.core")
            core.load_new()
            has_help = bool(torch.ops.custom_pypto.add_custom.__doc__)
            done = [add().tolist(), index().shape[-1], has_help]
            wrong = [each.name for each in core.plugins() if each.status != "loaded"]
            os._exit(0 if done == [[1, 2, 3], 4, True] and not wrong else 9)
        finally:
            os._exit(8)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for thread in threads: thread.join()
print(json.dumps(statuses))
"""


def test_forks_among_threads_that_race_for_the_first_use_have_every_op(server: ForkServer) -> None:
    for _ in range(RACES):
        done = server.run(CALLS + FORKS, [], {})
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [0] * 10, done.stderr

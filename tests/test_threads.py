"""Threads whose first import, first look-up and first call of an op are all at once."""

import json
import os

from fork_server import ForkServer

RACES = int(os.environ.get("CUSTOM_PYPTO_TEST_RACES", "5"))
"""How many processes race; each has 8 threads."""

# Each thread begins with another import, and calls the ops in another order.
RACE = """
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
        done = server.run(RACE, [], {})
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)
        assert len(results) == 8
        seen |= {json.dumps(each) for each in results}
    assert len(seen) == 1, seen
    (given, plugins, _) = json.loads(seen.pop())
    assert dict(given)["add"] == [1, 2, 3]
    assert {status for _, status in plugins} == {"loaded"}

"""Threads whose first launches are all at once: of one op, and of different ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from custom_pypto_testing.verification.report import FASTER

RACES = int(os.environ.get("CUSTOM_PYPTO_TEST_RACES", "4"))
"""How many processes race; each has 8 threads."""

RACE = """
import threading
x, numbers = torch.ones(40).npu(), torch.ones(3, dtype=torch.long).npu()
torch.npu.synchronize()
barrier, results = threading.Barrier(8), []
def use(number):
    calls = [
        lambda: everything(x)[0].item() - NUMBER,
        lambda: ops.test_number(numbers, number).tolist(),
        lambda: ops.test_opposite(numbers, number).tolist(),
        lambda: ops.test_scaled(x, 3.0)[39].item(),
    ]
    expected = [1, 3 * [number], 3 * [-number], 3]
    barrier.wait()
    for place in range(number, number + 4):
        try:
            seen = calls[place % 4]()
        except BaseException as error:
            seen = repr(error)
        results.append([seen, expected[place % 4]])
threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
give([results, live()])
"""


def test_threads_that_race_for_the_first_launch_get_their_own_results(
    launch: Callable[..., Any], queue: int
) -> None:
    for race in range(RACES):
        switches = dict.fromkeys(FASTER, race % 2)
        results, live = launch(RACE, TASK_QUEUE_ENABLE=queue, **switches)
        assert len(results) == 32
        assert [seen for seen, _ in results] == [expected for _, expected in results]
        assert not any(live.values())

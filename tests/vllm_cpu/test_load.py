"""Many requests of mixed lengths, some aborted, in a cache that is too small for all."""

import ctypes
import random
import resource
from pathlib import Path
from typing import Any

import pytest
from checkpoints import prompts
from engine import as_prompt, engine, generate, sampling

from examples.vllm_serve.checkpoint import GAP, full_forward_gap

AT_ONCE = 16
# Requests, the longest prompt, the most new tokens, the tokens of a step, blocks of the cache.
# DeepSeek-V4 has its own blocks, of 4 to 256 tokens; some requests get a second one of 256.
LOADS = {"DeepseekV32": (200, 200, 30, 256, 100), "DeepseekV4": (60, 250, 60, 64, 160)}
# What the allocator keeps differs a little from round to round.
MEGABYTES = 4


def resident() -> int:
    """Return how many bytes of this process are in memory, free ones of the heap left out."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def free_blocks(core: Any) -> int:
    """Return how many blocks of the cache no request holds."""
    return core.engine_core.engine_core.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()


@pytest.mark.parametrize("model", LOADS, indirect=True)
def test_all_requests_end_with_the_tokens_that_they_have_alone(model: Any) -> None:
    count, longest, most, step, blocks = LOADS[model.family]
    draw = random.Random(0)
    batch = prompts(*(draw.choice((3, 17, 64, 130, longest)) for _ in range(count)))
    lengths = [draw.choice((4, 12, most)) for _ in batch]
    aborted = set(draw.sample(range(count), count // 10))
    found: dict[int, list[int]] = {}
    options = {
        "block_size": 16,
        "num_gpu_blocks_override": blocks,
        "enable_prefix_caching": False,
        "max_num_seqs": AT_ONCE,
        "max_num_batched_tokens": step,
        "disable_log_stats": False,
    }
    with engine(model.folder, **options) as llm:
        alone = {i: generate(llm, [batch[i]], lengths[i])[0] for i in range(0, count, 10)}
        core = llm.llm_engine
        free = free_blocks(core)
        running = set(aborted)

        def serve() -> None:
            for number in range(count):
                core.add_request(str(number), as_prompt(batch[number]), sampling(lengths[number]))
            while core.has_unfinished_requests():
                for each in core.step():
                    number = int(each.request_id)
                    if number in running:
                        running.remove(number)
                        core.abort_request([str(number)])
                    elif each.finished and number not in aborted:
                        found[number] = list(each.outputs[0].token_ids)

        # Caches get their pages, and products are prepared for each size, in the first round.
        sizes = []
        for _ in range(3):
            serve()
            sizes.append(resident())
        grown = sizes[2] - sizes[1]
        preemptions = {each.name: each for each in llm.get_metrics()}["vllm:num_preemptions"]
        assert free_blocks(core) == free
    assert found.keys() == set(range(count)) - aborted
    assert preemptions.value > 0
    assert not running
    assert grown < MEGABYTES * 2**20
    assert [found[i] for i in alone if i in found] == [alone[i] for i in alone if i in found]
    assert max(full_forward_gap(model.reference, batch[i], found[i]) for i in found) < GAP

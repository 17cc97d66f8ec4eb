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

REQUESTS, AT_ONCE, ABORTED = 200, 16, 20
BLOCK, BLOCKS = 16, 100
# What the allocator keeps differs a little from round to round.
MEGABYTES = 4


def resident() -> int:
    """Return how many bytes of this process are in memory, free ones of the heap left out."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def free_blocks(core: Any) -> int:
    """Return how many blocks of the cache no request holds."""
    scheduler = core.engine_core.engine_core.scheduler
    return scheduler.kv_cache_manager.block_pool.get_num_free_blocks()


@pytest.mark.parametrize("model", ["DeepseekV32"], indirect=True)
def test_all_requests_end_with_the_tokens_that_they_have_alone(model: Any) -> None:
    draw = random.Random(0)
    batch = prompts(*(draw.choice((3, 17, 64, 130, 200)) for _ in range(REQUESTS)))
    lengths = [draw.choice((4, 12, 30)) for _ in batch]
    aborted = set(draw.sample(range(REQUESTS), ABORTED))
    found: dict[int, list[int]] = {}
    options = {
        "block_size": BLOCK,
        "num_gpu_blocks_override": BLOCKS,
        "enable_prefix_caching": False,
        "max_num_seqs": AT_ONCE,
        "max_num_batched_tokens": 256,
        "max_model_len": 256,
        "disable_log_stats": False,
    }
    with engine(model.folder, **options) as llm:
        alone = {i: generate(llm, [batch[i]], lengths[i])[0] for i in range(0, REQUESTS, 10)}
        core = llm.llm_engine
        free = free_blocks(core)
        running = set(aborted)

        def serve() -> None:
            for number in range(REQUESTS):
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
    assert found.keys() == set(range(REQUESTS)) - aborted
    assert preemptions.value > 0
    assert not running
    assert grown < MEGABYTES * 2**20
    assert [found[i] for i in alone if i in found] == [alone[i] for i in alone if i in found]
    assert max(full_forward_gap(model.reference, batch[i], found[i]) for i in found) < GAP

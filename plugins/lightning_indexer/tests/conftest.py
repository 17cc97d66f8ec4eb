"""A fixture of the tests of the indexer."""

import pytest
import torch
from custom_pypto_lightning_indexer.samples import Sizes


@pytest.fixture
def random_sizes(seed: int) -> Sizes:
    """The sizes of a batch, drawn by the test's parameter `seed`."""

    def pick(*choices: int) -> int:
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    generator = torch.Generator().manual_seed(seed)
    batch = pick(1, 2, 5)
    key_heads = pick(1, 1, 2, 3)
    return Sizes(
        key_lengths=torch.randint(0, pick(3, 70, 500), (batch,), generator=generator).tolist(),
        query_tokens=pick(1, 2, 9, 17),
        heads=key_heads * pick(1, 3, 8, 16, 37, 64, 80),
        key_heads=key_heads,
        depth=pick(1, 2, 7, 16, 64, 65, 128, 130),
        block_size=pick(1, 3, 16, 64, 128),
        weights_dtype=torch.float32 if pick(0, 1) else None,
        lengths_dtype=torch.int64 if pick(0, 1) else torch.int32,
        seed=seed,
    )

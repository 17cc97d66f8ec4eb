"""The two model sizes of the example."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of one attention layer and of the batch that it decodes."""

    name: str
    hidden: int
    query_latent: int
    heads: int
    nope: int
    rope: int
    latent: int
    index_heads: int
    index_size: int
    block_size: int
    contexts: tuple[int, ...]
    """Context length of each sequence at the first step, the decoded token included."""
    steps: int

    @property
    def sparse_count(self) -> int:
        """How many positions the fused op selects; fixed by the op's definition."""
        return 2048


DEEPSEEK = Sizes(
    name="DeepSeek-V3.2",
    hidden=7168,
    query_latent=1536,
    heads=128,
    nope=128,
    rope=64,
    latent=512,
    index_heads=64,
    index_size=128,
    block_size=128,
    contexts=(768, 4097, 8192, 131071),
    steps=24,
)

SMALL = Sizes(
    name="small",
    hidden=1024,
    query_latent=384,
    heads=16,
    nope=64,
    rope=64,
    latent=256,
    index_heads=16,
    index_size=128,
    block_size=128,
    contexts=(768, 2304, 4097, 8191),
    steps=16,
)

ALL = {"deepseek": DEEPSEEK, "small": SMALL}

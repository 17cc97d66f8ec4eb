"""The two model sizes of the example."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of one attention layer and of the batch that it decodes: DeepSeek-V3.2's."""

    name: str = "DeepSeek-V3.2"
    hidden: int = 7168
    query_latent: int = 1536
    heads: int = 128
    nope: int = 128
    rope: int = 64
    latent: int = 512
    index_heads: int = 64
    index_size: int = 128
    block_size: int = 128
    contexts: tuple[int, ...] = (768, 4097, 8192, 131071)
    """Context length of each sequence at the first step, the decoded token included."""
    steps: int = 24


DEEPSEEK = Sizes()
SMALL = Sizes(
    name="small",
    hidden=1024,
    query_latent=384,
    heads=16,
    nope=64,
    latent=256,
    index_heads=16,
    contexts=(768, 2304, 4097, 8191),
)
ALL = {"deepseek": DEEPSEEK, "small": SMALL}

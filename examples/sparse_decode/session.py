"""A decode session: a batch of sequences over one text, their caches, and each step's arguments."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.eager import FusedArguments, rms_norm, rope
from examples.sparse_decode.hidden_states import HiddenStates
from examples.sparse_decode.paged_cache import PagedCache
from examples.sparse_decode.rope_angles import sin_cos
from examples.sparse_decode.sizes import Sizes
from examples.sparse_decode.text import Text
from examples.sparse_decode.weights import make_weights

SEED = 20250929


class Session:
    """Decodes one text at several places at once, teacher-forced: the next token is the text's."""

    def __init__(self, sizes: Sizes, text: Text) -> None:
        generator = torch.Generator().manual_seed(SEED)
        self.sizes = sizes
        self.text = text
        self.weights = make_weights(sizes, generator)
        self.hidden_states = HiddenStates(sizes.hidden, generator)
        self.cache = PagedCache(sizes, generator)
        spread = len(text.data) // len(sizes.contexts)
        self.starts = [i * spread for i in range(len(sizes.contexts))]

    def states(self, sequence: int, start: int, stop: int) -> Tensor:
        """Return the hidden states [stop - start, H] of a sequence's positions."""
        history = self.hidden_states.history
        first = self.starts[sequence] + start - history
        return self.hidden_states(self.text.tokens(first, stop - start + history))

    def prefill(self, chunk: int = 4096) -> Iterator[int]:
        """Fill the caches with every context but its last token; yield the tokens done each time.

        Only what the caches hold is computed (latent, rope key, index key); the queries of a
        prompt's tokens are not needed to decode after it.
        """
        for sequence, context in enumerate(self.sizes.contexts):
            for start in range(0, context - 1, chunk):
                stop = min(start + chunk, context - 1)
                slots = self.cache.grow(sequence, stop - start)
                positions = torch.arange(start, stop)
                rows = self._cached_rows(self.states(sequence, start, stop), positions)
                self.cache.write(slots, *rows)
                yield stop - start

    def next_step(self) -> FusedArguments:
        """Lengthen every sequence by one token and return the fused op's arguments for it."""
        batch = range(len(self.sizes.contexts))
        positions = self.cache.lengths.long().unsqueeze(1)
        x = torch.stack([self.states(b, int(positions[b]), int(positions[b]) + 1) for b in batch])
        cache_index = torch.stack([self.cache.grow(b, 1) for b in batch])
        sin, cos = sin_cos(positions, self.sizes.rope)
        w = self.weights
        return FusedArguments(
            x=x,
            w_dq=w.w_dq,
            w_uq_qr=w.w_uq_qr,
            w_uk=w.w_uk,
            w_dkv_kr=w.w_dkv_kr,
            gamma_cq=w.gamma_cq,
            gamma_ckv=w.gamma_ckv,
            sin=sin,
            cos=cos,
            cache_index=cache_index.int(),
            kv_cache=self.cache.kv,
            kr_cache=self.cache.kr,
            block_table=self.cache.block_table,
            act_seqs=self.cache.lengths,
            w_idx_qb=w.w_idx_qb,
            w_idx_k=w.w_idx_k,
            w_idx_proj=w.w_idx_proj,
            in_gamma_k=w.in_gamma_k,
            in_beta_k=w.in_beta_k,
            index_k_cache=self.cache.index_k,
        )

    def _cached_rows(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        w, rotary = self.weights, self.sizes.rope
        sin, cos = sin_cos(positions, rotary)
        compressed = x @ w.w_dkv_kr
        kv = rms_norm(compressed[:, : self.sizes.latent], w.gamma_ckv)
        key_rope = rope(compressed[:, self.sizes.latent :], sin, cos)
        index_key = functional.layer_norm(
            (x @ w.w_idx_k).float(),
            (self.sizes.index_size,),
            w.in_gamma_k.float(),
            w.in_beta_k.float(),
            1e-6,
        ).to(x.dtype)
        rotated = rope(index_key[:, :rotary], sin, cos)
        return kv, key_rope, torch.cat((rotated, index_key[:, rotary:]), -1)

"""Weights of one DeepSeek sparse attention layer, seeded."""

from __future__ import annotations

import torch
from torch import Tensor

from examples.sparse_decode.sizes import Sizes

ATTENTION_GAIN = 1.2
"""How sharp the softmax is; chosen so that a head attends to some tens of positions."""


LATENT_SCALE = 0.1
"""Scale of the cached latents and so of the output: that of the published data, for which the
tolerance (atol 1e-4) holds."""


def make_weights(sizes: Sizes, generator: torch.Generator) -> dict[str, Tensor]:
    """Draw random weights with which the layer attends to places similar to the present one.

    They are bf16, by their names in the schema of npu_sparse_attention_pto.

    With independent projections every score would be noise. Training aligns queries with keys; here
    both are projections of one random view of the hidden state (w_dq), so that a score grows with
    the similarity of two hidden states, and each head compares a random subspace.
    """

    def normal(*shape: int, std: float = 1.0) -> Tensor:
        return torch.randn(*shape, generator=generator) * std

    s = sizes
    w_dq = normal(s.hidden, s.query_latent, std=s.hidden**-0.5)
    unit = s.query_latent**-0.5

    latent_view = normal(s.query_latent, s.latent, std=unit)
    rope_view = normal(s.query_latent, s.rope, std=unit)
    head_view = normal(s.heads, s.latent, s.nope, std=s.latent**-0.5)
    nope_query = torch.einsum("ql,nld->qnd", latent_view, head_view)
    nope_query *= ATTENTION_GAIN / LATENT_SCALE
    rope_gain = ATTENTION_GAIN * (1 + 0.5 * normal(1, s.heads, s.rope))
    rope_query = rope_view.unsqueeze(1) * rope_gain
    w_uq_qr = torch.cat((nope_query, rope_query), -1).flatten(1)

    index_view = normal(s.query_latent, s.index_size, std=unit)
    index_gain = 1 + 0.5 * normal(1, s.index_heads, s.index_size)
    w_idx_proj = normal(s.hidden, s.index_heads, std=0.25 * s.hidden**-0.5)
    w_idx_proj[0] += 1.0

    tensors = {
        "w_dq": w_dq,
        "w_uq_qr": w_uq_qr,
        "w_uk": head_view.transpose(1, 2),
        "w_dkv_kr": w_dq @ torch.cat((latent_view, rope_view), -1) * 3**0.5,
        "gamma_cq": 1 + 0.1 * normal(s.query_latent),
        "gamma_ckv": LATENT_SCALE * (1 + 0.1 * normal(s.latent)),
        "w_idx_qb": (index_view.unsqueeze(1) * index_gain).flatten(1),
        "w_idx_k": w_dq @ index_view,
        "w_idx_proj": w_idx_proj,
        "in_gamma_k": 1 + 0.1 * normal(s.index_size),
        "in_beta_k": 0.1 * normal(s.index_size),
    }
    return {name: t.bfloat16().contiguous() for name, t in tensors.items()}

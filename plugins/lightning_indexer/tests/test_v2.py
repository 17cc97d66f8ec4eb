"""The second version: what compressed keys are visible, offsets, scores, gaps between sequences."""

from typing import Any

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch
from custom_pypto_lightning_indexer import QUANT_V2, V2, reference, selection_comparison
from custom_pypto_lightning_indexer.samples import Sizes, paged, quantised
from custom_pypto_lightning_indexer.samples_v2 import lightning_indexer, second
from custom_pypto_plugin import SampleInput
from refusals import assert_refused

indexer = torch.ops.custom_pypto.npu_lightning_indexer_v2


def int32(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def check(op: str, sample: SampleInput) -> Any:
    found = getattr(torch.ops.custom_pypto, op)(*sample.args, **sample.kwargs)
    expected = reference.select(op, *sample.args, **sample.kwargs)
    selection_comparison.compare(op, found, expected, sample)
    return found


@pytest.mark.parametrize("ratio", [1, 2, 3, 127, 128])
@pytest.mark.parametrize("tokens", [1, 5, 300])
def test_a_token_sees_the_windows_that_are_complete(ratio: int, tokens: int) -> None:
    """Token p of a sequence sees (p + 1) // ratio compressed keys."""
    keys, residual = divmod(tokens, ratio)
    rows = min(tokens, 140)
    query, weights = torch.ones(1, rows, 1, 1), torch.ones(1, rows, 1)
    key = torch.arange(keys).float().view(1, keys, 1, 1)
    options = {} if ratio == 1 else {"cmp_residual_k": int32(residual)}
    indices, values = indexer(
        query, key, weights, tokens, mask_mode=3, cmp_ratio=ratio, return_value=1, **options
    )
    for s in range(rows):
        seen = (tokens - rows + s + 1) // ratio
        expected = [*range(seen - 1, -1, -1), *[-1] * (tokens - seen)]
        assert indices[0, s, 0].tolist() == expected
        assert values[0, s, 0].tolist() == [-torch.inf if c < 0 else c for c in expected]


@pytest.mark.parametrize("seed", range(16))
def test_random_batches(random_sizes: Sizes, seed: int) -> None:
    ratio = (1, 3, 4, 128)[seed % 4]
    sample = paged("cpu", "", random_sizes, sparse_count=(1, 50, 2048)[seed % 3])
    check(V2, second(sample, ratio))
    for dtype in (torch.int8, torch.float8_e4m3fn):
        check(QUANT_V2, second(quantised(sample, dtype), ratio))


def test_rows_behind_the_used_ones_are_none() -> None:
    """Lengths that are used may be shorter than the prefix sums leave room for."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(9, 2, 8, generator=generator) for _ in range(2))
    weights = torch.randn(9, 2, generator=generator)
    options = {"layout_q": "TND", "layout_k": "TND", "mask_mode": 3, "return_value": 1}
    sums, used = int32(0, 4, 4, 8), int32(3, 0, 1)
    both = {"cu_seqlens_q": sums, "cu_seqlens_k": sums, "seqused_q": used, "seqused_k": used}
    found = check(V2, SampleInput((query, key, weights, 3), options | both))
    assert found[0].ne(-1).any(-1).all(-1).tolist() == [True] * 3 + [False] + [True] + [False] * 4


SAMPLES = {sample.name: sample for sample in lightning_indexer("cpu")}
MOST = 2**31 - 1
OFFSETS, COMPRESSED = "output_idx_offset", "paged-compressed"
REFUSED = [
    ("tnd", "cu_seqlens_q", int32(1, 3, 5, 5, 9), "got 1 after 0 at index 0"),
    ("tnd", "cu_seqlens_k", int32(0, 40, 39, 57, 137), "got 39 after 40 at index 2"),
    ("tnd", "seqused_q", int32(3, 3, 0, 4), "between 0 and 2 (the tokens of the sequence), got 3"),
    ("paged", "seqused_k", int32(37, 5, 129), "got 129 for sequence 2"),
    ("paged", "seqused_q", int32(2, 2, -1), "got -1 for sequence 2"),
    (COMPRESSED, "cmp_residual_k", int32(0, 4, 1), "between 0 and 3 (cmp_ratio - 1), got 4"),
    (COMPRESSED, OFFSETS, int32(*[[[0], [-1]]] * 3), "got -1 for query token 1"),
    (COMPRESSED, OFFSETS, int32(*[[[MOST], [0]]] * 3), f"got {MOST} for query token 0"),
]


@pytest.mark.parametrize(("name", "argument", "value", "text"), REFUSED)
def test_refuses_values(name: str, argument: str, value: torch.Tensor, text: str) -> None:
    sample = SAMPLES[name]
    given = dict(zip(("q", "k", "w", "topk"), sample.args, strict=True))
    given |= {**sample.kwargs, argument: value}
    assert_refused(V2, given, argument, text, is_of_values=True)

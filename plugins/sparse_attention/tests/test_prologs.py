"""npu_mla_prolog and npu_indexer_prolog alone."""

from dataclasses import replace
from pathlib import Path

import custom_pypto.core  # noqa: F401
import custom_pypto_blocks
import pytest
import torch
from cpp_constant import cpp_constants
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import attention_comparison, reference, samples
from custom_pypto_sparse_attention.ops import LAYER_NORM_EPSILON, RMS_EPSILON

mla_prolog = torch.ops.custom_pypto.npu_mla_prolog
indexer_prolog = torch.ops.custom_pypto.npu_indexer_prolog
DTYPES = [torch.bfloat16, torch.float16, torch.float32]
CPU = Path(custom_pypto_blocks.__file__).parent / "include" / "custom_pypto_blocks" / "cpu"
BLOCKS = [cpp_constants(CPU, name) for name in ("kFewRows", "kMoreRows", "kManyRows")]
"""The three ways to cut a product into blocks: panels, steps, and rows up to which it is taken."""
MOST_ROWS = [rows for _, _, rows in BLOCKS]
TOKENS = [1, 5, 16, 17, *MOST_ROWS, *(rows + 1 for rows in MOST_ROWS), 4 * MOST_ROWS[-1] + 64]


def of_tokens(sizes: samples.Sizes, tokens: int, **changes: int) -> samples.Sizes:
    return replace(sizes, lengths=(max(450, tokens),), tokens=tokens, **changes)


MLA_SIZES = [
    *(of_tokens(samples.WIDE, tokens, heads=9) for tokens in TOKENS),
    # A block of the weights has two rows, and the last one row more.
    *(of_tokens(samples.SMALL, rows, hidden=2 * steps + 3) for _, steps, rows in BLOCKS),
    # Thousands of additions for one number: the error must not grow with them.
    replace(samples.SMALL, hidden=samples.DEEPSEEK_V32.hidden),
]
INDEXER_SIZES = [of_tokens(samples.WIDE, tokens) for tokens in (1, 5, 17, 200)]

PROLOGS = {
    "mla": (mla_prolog, reference.mla_prolog, samples.mla_arguments),
    "indexer": (indexer_prolog, reference.indexer_prolog, samples.indexer_arguments),
}


def check(prolog: str, sizes: samples.Sizes, scale: float = 1.0) -> None:
    """Compare what a prolog returns and caches with the reference; `scale` is of x."""
    op, function, arguments = PROLOGS[prolog]
    actual = arguments(sizes)
    actual["x"].mul_(scale)
    expected = {name: each.clone() for name, each in actual.items()}
    attention_comparison.compare(op(**actual), function(**expected), SampleInput(()))
    for name in actual:
        attention_comparison.assert_close(actual[name], expected[name], name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("prolog", "sizes"),
    [*(("mla", each) for each in MLA_SIZES), *(("indexer", each) for each in INDEXER_SIZES)],
)
def test_few_and_many_tokens_and_rows_of_weights(
    prolog: str, sizes: samples.Sizes, dtype: torch.dtype
) -> None:
    check(prolog, replace(sizes, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_beside_a_tokens_row_and_a_weight_is_read(dtype: torch.dtype) -> None:
    """Sizes are odd: kernels that multiply pairs have half a pair left."""
    arguments = samples.mla_arguments(replace(samples.ODD, tokens=3, dtype=dtype))
    expected = mla_prolog(**arguments)
    for weight in ("w_dq", "w_uq_qr", "w_uk", "w_dkv_kr"):
        given = arguments[weight]
        larger = given.new_full([size + 1 for size in given.shape], torch.nan)
        arguments[weight] = larger[tuple(map(slice, given.shape))].copy_(given)
    arguments["x"][:, 1] = torch.nan
    for left, right in zip(mla_prolog(**arguments), expected, strict=True):
        for token in (0, 2):
            assert torch.equal(left[:, token], right[:, token])


@pytest.mark.parametrize("tokens", [30, 900])
def test_a_tokens_result_does_not_depend_on_other_tokens(tokens: int) -> None:
    arguments = samples.mla_arguments(replace(samples.WIDE, lengths=(900,), tokens=tokens))
    together = mla_prolog(**arguments)
    for token in (0, tokens // 2, tokens - 1):
        one = slice(token, token + 1)
        of_token = {name: arguments[name][:, one] for name in ("x", "sin", "cos", "cache_index")}
        alone = mla_prolog(**arguments | of_token)
        for left, right in zip(together, alone, strict=True):
            assert torch.equal(left[:, one], right)


def test_epsilons_of_the_norms() -> None:
    """With rows as small as the square roots of the epsilons, which then count."""
    sizes = replace(samples.WIDE, dtype=torch.float32)
    check("mla", sizes, RMS_EPSILON**0.5)
    check("indexer", sizes, LAYER_NORM_EPSILON**0.5)

"""Which instruction set a process uses: the processor's best, or the one that is forced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch
from cross_build import DRIVERS
from custom_pypto_sparse_attention import samples
from emulator import DOT_CPU, MAX_CPU, PLAIN_CPU, Emulated
from indexer_op import select

from conftest import Kernels, Op
from plugins.sparse_attention.tests.test_attention import call

PLUGINS = sorted(path.stem for path in DRIVERS.glob("*.cpp"))
BEST = {PLAIN_CPU: "neon", DOT_CPU: "neon_dot", MAX_CPU: "neon_i8mm"}
BF16_ISAS = ("neon_bf16", "neon_i8mm")
"""Their instruction for bf16 takes subnormal numbers as zero; the others do not."""
SUBNORMAL = 2.0**-130


@pytest.mark.parametrize("cpu", BEST)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_uses_the_best_isa_of_the_processor(
    driver: Callable[[str], Path], plugin: str, cpu: str
) -> None:
    with closing(Emulated(driver(plugin), cpu)) as kernels:
        assert kernels.isa() == BEST[cpu]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_uses_the_isa_that_is_forced(
    driver: Callable[[str], Path], plugin: str, int8_isa: str
) -> None:
    with closing(Emulated(driver(plugin), MAX_CPU, int8_isa)) as kernels:
        assert kernels.isa() == int8_isa


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize(
    ("cpu", "isa", "available"),
    [
        (PLAIN_CPU, "neon_dot", ("portable", "neon")),
        (DOT_CPU, "neon_bf16", ("portable", "neon", "neon_dot")),
        (DOT_CPU, "neon_i8mm", ("portable", "neon", "neon_dot")),
        (PLAIN_CPU, "avx2", ("portable", "neon")),
        (MAX_CPU, "avx512_bf16", ("portable", "neon", "neon_dot", "neon_bf16", "neon_i8mm")),
    ],
)
def test_refuses_an_isa_that_the_processor_lacks(
    driver: Callable[[str], Path], plugin: str, cpu: str, isa: str, available: tuple[str, ...]
) -> None:
    refusal = (
        f"CUSTOM_PYPTO_CPU_ISA='{isa}' is an instruction set that this machine lacks; this"
        f" machine has: {', '.join(available)}."
    )
    with (
        closing(Emulated(driver(plugin), cpu, isa)) as kernels,
        pytest.raises(AssertionError, match="the driver ended with status 1") as refused,
    ):
        kernels.isa()
    assert refusal in str(refused.value)


def test_scores_bf16_with_the_instruction_of_the_isa(int8_kernels: Kernels, int8_isa: str) -> None:
    key = torch.tensor([0.0, SUBNORMAL]).bfloat16().repeat_interleave(2).reshape(1, 2, 1, 2)
    query, weights = torch.ones(1, 1, 1, 2).bfloat16(), torch.ones(1, 1, 1).bfloat16()
    options = {"layout_key": "BSND", "sparse_mode": 0, "sparse_count": 2}
    order = select(int8_kernels("lightning_indexer"), query, key, weights, **options)
    assert order.flatten().tolist() == ([0, 1] if int8_isa in BF16_ISAS else [1, 0])


def check_product(product: Op, isa: str) -> None:
    x = torch.full((1, 2), SUBNORMAL).bfloat16()
    result = product(x, torch.ones(2, 1).bfloat16(), to_fp32=True)
    assert result.item() == (0.0 if isa in BF16_ISAS else 2 * SUBNORMAL)


def test_multiplies_bf16_with_the_instruction_of_the_isa(product: Op, isa: str) -> None:
    check_product(product, isa)


def test_the_int8_plugin_multiplies_bf16_likewise(int8_product: Op, int8_isa: str) -> None:
    check_product(int8_product, int8_isa)


def test_attends_in_bf16_with_the_instruction_of_the_isa(attention: Op, isa: str) -> None:
    arguments = call(samples.SMALL, count=1)
    arguments["kv_cache"].fill_(SUBNORMAL)
    out, _ = attention(**arguments)
    expected = 0.0 if isa in BF16_ISAS else SUBNORMAL
    assert bool(out.eq(expected).all())

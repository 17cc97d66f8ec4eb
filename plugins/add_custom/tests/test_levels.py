"""The kernels of every instruction set level, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SUMS = """
import custom_pypto.core, torch
add_custom = torch.ops.custom_pypto.add_custom
generator = torch.Generator().manual_seed(0)
floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
for dtype in (*floats, torch.int32, torch.int64):
    for size in (1, 7, 8, 15, 16, 17, 33, 1000, 100_003):
        wide = torch.randn(2, size, generator=generator, dtype=torch.float64) * 1000
        one, other = wide.to(dtype)
        assert add_custom(one, other).equal(one + other), (dtype, size)
        assert add_custom(one[::2], other[::2]).equal((one + other)[::2]), (dtype, size)
every = torch.arange(-(2**15), 2**15).to(torch.int16)
for dtype in floats[:2]:
    for addend in (0.0, 1.0, 6e-8, -0.333, 65504.0, float("inf")):
        one = every.view(dtype)
        other = torch.full_like(one, addend)
        actual, expected = add_custom(one, other), one + other
        assert actual.isnan().equal(expected.isnan()), (dtype, addend)
        assert actual.nan_to_num(7).equal(expected.nan_to_num(7)), (dtype, addend)
print(custom_pypto.core.cpu_isa("add_custom"))
"""
# avx512_bf16 has nothing that a sum could use.
KERNELS_AT = {"avx512_bf16": "avx512"}


@pytest.mark.parametrize(
    "level", ["portable", "avx2", "avx512", "avx512_bf16", "neon", "neon_bf16"]
)
def test_level_adds_as_torch_does_or_says_that_the_machine_lacks_it(level: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SUMS],
        env={**os.environ, "CUSTOM_PYPTO_CPU_ISA": level},
        capture_output=True,
        text=True,
        check=False,
    )
    lacking = f"'{level}' is an instruction set level that this machine lacks"
    used = KERNELS_AT.get(level, level)
    assert done.stdout.strip() == used or lacking in done.stderr, done.stdout + done.stderr

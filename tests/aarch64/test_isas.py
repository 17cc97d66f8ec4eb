"""The CPU kernels for aarch64, under emulation, at each instruction set: the plugins' own tests.

torch runs beside them: CUSTOM_PYPTO_TEST_AARCH64 names the folder with a torch for aarch64.
"""

import json
import os
from contextlib import AbstractContextManager, closing
from pathlib import Path

import custom_pypto.core  # noqa: F401  (makes the ops)
import pytest
import torch
from cross_build import PLUGINS, Build, isas_of
from custom_pypto_sparse_attention import samples
from emulated_ops import VARIABLE, Emulator
from programs import run_python
from repository import ROOT

# Armv8.2; the same with dot products of int8; and all that the emulator knows, bf16 and matrix
# products of int8 among them. torch needs more than Armv8.0.
PLAIN_CPU, DOT_CPU, MAX_CPU = "a64fx", "neoverse-n1", "max"
CPUS = {
    "portable": PLAIN_CPU,
    "neon": PLAIN_CPU,
    "neon_dot": DOT_CPU,
    "neon_bf16": MAX_CPU,
    "neon_i8mm": MAX_CPU,
}
"""For each instruction set a processor that has it, and where there is one, none beyond it."""
ISAS = tuple(CPUS)
WITH_BF16 = ISAS[3:]
OWN_ISAS = {plugin: isas for plugin in PLUGINS if (isas := isas_of(plugin))}

# The files of a plugin that test kernels, and the tests in them that call little: an emulator is
# slow, and what is judged before the kernel is the same everywhere.
TESTS = {
    "add_custom": ("test_add_custom.py", "sum_is_that or infinities or every_16_bit"),
    "compressor": ("test_compressor.py", "every_way_to_cut or extreme_numbers"),
    "grouped_matmul": ("test_grouped_matmul.py", "any_groups and not 1100"),
    "lightning_indexer": ("test_scores.py test_selection.py test_quant.py", "not threads"),
    "lightning_indexer_prolog": ("test_prolog.py", "not threads"),
    "linear": ("test_linear.py", "(any_rows and not 100) or infinities or bias"),
    "mhc": ("test_mhc.py", "a_layer_is or one_stream_each or nan_stays"),
    "weight_quant_matmul": ("test_weight_quant_matmul.py", "any_rows and not 40"),
    "quant_matmul": ("test_quant_matmul.py", "(any_rows and not 110) or bias or rows_of_zeros"),
    "sparse_attention": (
        "test_attention.py test_prologs.py",
        "not (threads or ranges or any_size_are or small_outputs or 300 or 700 or 900 or 2048)",
    ),
    "sparse_flash_mla": ("test_attention.py", "case_and_layout or any_ratio or any_sink"),
}


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return Build(
        tmp_path_factory.mktemp("aarch64"), Path(os.environ["CUSTOM_PYPTO_TEST_AARCH64"]) / "torch"
    )


def started(build: Build, cpu: str, isa: str | None = None) -> AbstractContextManager[Emulator]:
    """The plugins on a processor, by default at its best instruction set."""
    return closing(Emulator(build.command(cpu, isa, OWN_ISAS)))


def best(plugin: str, isa: str) -> str:
    """Return the best instruction set of a plugin that is not above `isa`."""
    return [each for each in ISAS[: ISAS.index(isa) + 1] if each in OWN_ISAS[plugin]][-1]


@pytest.mark.parametrize(
    ("cpu", "isa"), [(PLAIN_CPU, "neon"), (DOT_CPU, "neon_dot"), (MAX_CPU, "neon_i8mm")]
)
def test_the_best_isa_of_the_processor_is_used(build: Build, cpu: str, isa: str) -> None:
    with started(build, cpu) as emulator:
        assert emulator.isas == [best(plugin, isa) for plugin in OWN_ISAS]


@pytest.mark.parametrize("isa", ISAS)
def test_the_isa_that_is_forced_multiplies_bf16_by_its_instruction(build: Build, isa: str) -> None:
    """That of bf16 takes subnormal numbers as zero; the others do not."""
    subnormal = 2.0**-130
    key = torch.tensor([0.0, subnormal]).bfloat16().repeat_interleave(2).reshape(1, 2, 1, 2)
    query, weights = torch.ones(1, 1, 1, 2).bfloat16(), torch.ones(1, 1, 1).bfloat16()
    options = {"layout_key": "BSND", "sparse_mode": 0, "sparse_count": 2}
    attention = samples.attention_arguments(samples.SMALL, count=1)
    attention["kv_cache"].fill_(subnormal)
    ops = torch.ops.custom_pypto
    with started(build, MAX_CPU, isa) as emulator:
        assert emulator.isas == [best(plugin, isa) for plugin in OWN_ISAS]
        order = emulator.call(ops.npu_lightning_indexer_pto.default, query, key, weights, **options)
        out, _ = emulator.call(ops.npu_sparse_flash_attention.default, **attention)
    assert order.flatten().tolist() == ([0, 1] if isa in WITH_BF16 else [1, 0])
    assert bool(out.eq(0.0 if isa in WITH_BF16 else subnormal).all())


@pytest.mark.parametrize(
    ("plugin", "isa"), [(plugin, isa) for plugin in OWN_ISAS for isa in OWN_ISAS[plugin]]
)
def test_the_plugins_tests_pass(build: Build, plugin: str, isa: str) -> None:
    names, selected = TESTS[plugin]
    files = [f"plugins/{plugin}/tests/{name}" for name in names.split()]
    command = ("-m", "pytest", "-q", "-p", "emulated_ops", "-k", selected, *files)
    emulator = json.dumps(build.command(CPUS[isa], isa))
    variables = {VARIABLE: emulator, "PYTHONPATH": str(Path(__file__).parent)}
    run_python(*command, cwd=ROOT, env=variables)

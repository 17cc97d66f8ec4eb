"""The baselines compute the same as the ops, or a comparison of times would mean nothing."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from custom_pypto.core import cpu_isa, reference
from custom_pypto_build import compiler
from custom_pypto_build.compiler import compile_flags, find_compiler
from custom_pypto_build.settings import read_settings
from custom_pypto_build.torch_headers import find_torch
from custom_pypto_contract import platforms
from custom_pypto_plugin import Reference
from torch import Tensor

from benchmarks import cpu
from benchmarks.case import Targets
from benchmarks.cases import all_cases
from benchmarks.cases.attention import HEADS, LATENT, PUBLISHED_LATENTS, ROPE, work
from benchmarks.cases.paging import BLOCK, block_table, generator, normal, visible
from benchmarks.eager import (
    Baseline,
    FusedArguments,
    attend_exactly,
    attend_to_rows,
    select_in_sequence,
    select_in_tensor_dtype,
)
from benchmarks.goals import goals
from benchmarks.measurement import Bench, at_peak
from benchmarks.peak import INT8_UNITS, SOURCES, UNITS, Peaks, Yardstick, unit_of
from benchmarks.row import Row
from benchmarks.selection import clocked_indexer
from benchmarks.timing import time_interleaved
from benchmarks.work import Work
from examples.sparse_decode import sizes
from examples.sparse_decode.session import Session
from examples.text import Text

Attend = Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]


def _step() -> FusedArguments:
    size = dataclasses.replace(sizes.SMALL, contexts=(2300, 130), steps=1)
    session = Session(size, Text.python_documentation())
    for _ in session.prefill():
        pass
    wide = (value.float() if value.is_floating_point() else value for value in session.next_step())
    return FusedArguments(*wide)


def _reference() -> Reference:
    found = reference("npu_sparse_attention_pto")
    assert found is not None
    return found


@pytest.mark.parametrize("baseline", [Baseline(), Baseline.in_fp32()])
def test_eager_baseline_computes_the_fused_op(baseline: Baseline) -> None:
    arguments = _step()
    expected = _reference().function(*(value.clone() for value in arguments))
    out = baseline.sparse_attention(arguments)
    assert (out - expected).norm() < 1e-4 * expected.norm()


def test_eager_baseline_writes_the_caches() -> None:
    arguments = _step()
    theirs = FusedArguments(*(value.clone() for value in arguments))
    _reference().function(*theirs)
    Baseline().sparse_attention(arguments)
    for name in ("kv_cache", "kr_cache", "index_k_cache"):
        torch.testing.assert_close(
            getattr(arguments, name), getattr(theirs, name), rtol=1e-4, atol=1e-5
        )


def _keys_that_differ(select: Callable[[Tensor, Tensor, Tensor, int], Tensor]) -> int:
    """Select among 8192 bf16 keys for 16 tokens; return in how many the worst row differs."""
    random = generator()
    query = normal(16, 64, 128, generator=random, dtype=torch.bfloat16)
    key = normal(8192, 128, generator=random, dtype=torch.bfloat16)
    weights = normal(16, 64, generator=random, dtype=torch.bfloat16)
    expected = select_in_tensor_dtype(query.double(), key.double(), weights.double(), 2048)
    got = select(query, key, weights, 2048)
    rows = zip(got.tolist(), expected.tolist(), strict=True)
    return max(len(set(row) - set(right)) for row, right in rows)


def test_eager_baseline_selects_what_the_op_selects() -> None:
    # As many as the published rule allows.
    assert _keys_that_differ(select_in_sequence) <= 1
    assert _keys_that_differ(select_in_tensor_dtype) > 1


def _attend(scale: float, attend: Attend) -> tuple[float, float]:
    """Attend to 2048 bf16 rows; return the share within the tolerance, the relative L2 error."""
    random = generator()
    query = normal(HEADS, LATENT, generator=random, dtype=torch.bfloat16)
    query_rope = normal(HEADS, ROPE, generator=random, dtype=torch.bfloat16)
    kv = normal(2048, LATENT, generator=random, dtype=torch.bfloat16, scale=scale)
    key_rope = normal(2048, ROPE, generator=random, dtype=torch.bfloat16)
    given = query, query_rope, kv, key_rope
    out = attend(*given, (LATENT + ROPE) ** -0.5).double()
    expected = attend_to_rows(*(value.double() for value in given), (LATENT + ROPE) ** -0.5)
    close = torch.isclose(out, expected, rtol=0.03, atol=1e-4).double().mean()
    return float(close), float((out - expected).norm() / expected.norm())


@pytest.mark.parametrize(
    ("scale", "attend"), [(PUBLISHED_LATENTS, attend_to_rows), (1, attend_exactly)]
)
def test_eager_baseline_attends_as_well_as_the_op(scale: float, attend: Attend) -> None:
    close, error = _attend(scale, attend)
    assert close >= 0.999
    assert error <= 5e-3


def test_bf16_attention_is_too_coarse_for_large_latents() -> None:
    close, _ = _attend(1, attend_to_rows)
    assert close < 0.999


def test_every_op_of_the_benchmark_has_a_quick_case() -> None:
    ops = {case.op for case in all_cases()}
    assert ops == {case.op for case in all_cases() if case.quick}


def test_interleaved_gives_each_call_as_many_rounds() -> None:
    rounds = {"a": 0, "b": 0}

    def call(name: str) -> None:
        rounds[name] += 1
        torch.ones(512, 512).sum()

    time_interleaved({name: partial(call, name) for name in rounds}, least=3, most=3, budget=0)
    assert min(rounds.values()) >= 3


def test_interleaved_runs_a_call_on_its_own_number_of_threads() -> None:
    before = torch.get_num_threads()
    seen: dict[str, set[int]] = {"one": set(), "all": set()}
    calls = {name: partial(lambda n: seen[n].add(torch.get_num_threads()), name) for name in seen}
    time_interleaved(calls, threads={"one": 1}, least=1, most=1, budget=0)
    assert seen == {"one": {1}, "all": {before}}
    assert torch.get_num_threads() == before


def test_only_keys_that_a_token_sees_are_counted() -> None:
    # The last three tokens of five see 3, 4 and 5 keys; of a sequence of two, 0, 1 and 2.
    assert visible([5, 2], 3) == 3 + 4 + 5 + 0 + 1 + 2
    assert visible([5, 2], 3, most=4) == 3 + 4 + 4 + 0 + 1 + 2
    assert work(1, [8192]).flop == 2 * 2048 * 128 * (576 + 512)


def test_a_step_takes_as_long_as_its_slower_peak() -> None:
    def yardstick(amount: int) -> Yardstick:
        return Yardstick(lambda: None, amount)

    peaks = {"flop": yardstick(1000), "byte": yardstick(10)}
    times = {"flop": 1.0, "byte": 1.0}
    steps = (Work(flop=3000, bytes=10), Work(flop=1000, bytes=50))
    assert at_peak(steps, peaks, times) == pytest.approx(3 + 5)
    assert at_peak(steps, {"flop": yardstick(1000)}, times) is None
    assert at_peak((), peaks, times) is None


def test_unit_is_that_of_the_instructions_for_the_dtype() -> None:
    assert unit_of("avx512_bf16", torch.bfloat16) == "avx512_bf16"
    assert unit_of("avx512_bf16", torch.float32) == "avx512"
    assert unit_of("avx2", torch.bfloat16) == "avx2"
    assert unit_of("neon_i8mm", torch.bfloat16) == "neon_bf16"
    assert unit_of("neon_i8mm", torch.int8) == "neon_i8mm"
    assert unit_of("portable", torch.bfloat16) is None


def test_peaks_do_the_work_that_they_count() -> None:
    peaks = Peaks()
    assert peaks.reading().rate(1) > 1e8
    found = [yard for yard in map(peaks.arithmetic, UNITS) if yard is not None]
    for yardstick in found:
        # Slower than any vector unit, faster than if nothing were vectorized or all left out.
        assert 1e9 < yardstick.rate(1) < 1e13 * torch.get_num_threads()


MULTIPLY_ADD = re.compile(
    r"\t(?:\{vex\}\s*)?(vdpbf16ps|vpdpbusd|vfmadd\d+ps|bfdot|sdot|smmla|fmla)\t"
)
# A label, instructions without a label, and the jump back to the first label.
LOOP = re.compile(r"^(\.L\w+):\n((?:(?!\.L).*\n)*?)\t[jcbt][\w.]*\t(?:.*, ?)?\1$", re.MULTILINE)
MACHINE = platforms.machine(platforms.platform_tag())
ISAS = compiler.isa_flags(MACHINE, int8=True)


@pytest.mark.parametrize("isa", sorted(ISAS.keys() & UNITS))
def test_the_loop_of_a_peak_does_nothing_but_multiply_and_add(isa: str) -> None:
    peaks = read_settings(SOURCES)
    is_int8 = isa in INT8_UNITS.values()
    [source] = [each for each in peaks.isa_sources if each.int8 == is_int8]
    flags = [*compile_flags(peaks, find_torch()), *ISAS[isa], *peaks.isa_flags]
    command = [*find_compiler().command, *flags, "-S", "-fno-verbose-asm", source.path, "-o", "-"]
    done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=True)
    loops = [body for _, body in LOOP.findall(done.stdout) if MULTIPLY_ADD.search(body)]
    assert loops, "the multiply-adds are not in a loop"
    for body in loops:
        instructions = [line for line in body.splitlines() if not line.startswith("\t.")]
        working = [line for line in instructions if MULTIPLY_ADD.search(line)]
        # Enough sums to hide the latency of one, all in registers: "(" and "[" are memory.
        assert len(working) >= 14
        assert not re.search(r"[(\[]", "".join(instructions)), body
        # And counting the rounds.
        assert len(instructions) - len(working) <= 2, body


# Kernels of fewer instruction sets. `portable` stands in for the others.
FEW_ISAS = """\
#include <custom_pypto/cpu/isa.h>
#undef CUSTOM_PYPTO_FOR_EACH_ISA
#undef CUSTOM_PYPTO_FOR_EACH_INT8_ISA
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) {calls}
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...)
"""


@pytest.fixture
def quick_to_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels compiled for the instruction set of this process alone, and not for speed."""
    ordinary = compiler.isa_flags(MACHINE)
    up_to_ours = list(ISAS)[: list(ISAS).index(cpu_isa("lightning_indexer") or "portable") + 1]
    ours = [isa for isa in up_to_ours if isa in ordinary][-1]
    few = {isa: ordinary[isa] for isa in ("portable", ours)}
    monkeypatch.setattr(compiler, "isa_flags", lambda *_, **__: few)
    header = tmp_path / "few_isas.h"
    calls = " ".join(f"macro({isa}, __VA_ARGS__)" for isa in few)
    header.write_text(FEW_ISAS.format(calls=calls))
    monkeypatch.setenv("CXXFLAGS", f"-O1 -include {header}")


@pytest.mark.usefixtures("quick_to_compile")
def test_clocked_indexer_selects_what_the_op_selects() -> None:
    lengths = [300, 9000]
    table, blocks = block_table(lengths, generator())
    key = normal(blocks, BLOCK, 1, 32, generator=generator(), dtype=torch.bfloat16)
    query = normal(2, 3, 8, 32, generator=generator(), dtype=torch.bfloat16)
    weights = normal(2, 3, 8, generator=generator(), dtype=torch.bfloat16)
    act = torch.tensor(lengths, dtype=torch.int32)
    positions, seconds = clocked_indexer()(query, key, weights, act, table, 256)
    expected = torch.ops.custom_pypto.npu_lightning_indexer_pto(
        query, key, weights, actual_seq_lengths_key=act, block_table=table, sparse_count=256
    )
    assert torch.equal(positions, expected)
    assert seconds > 0


def test_goals_are_met_or_not() -> None:
    targets = Targets(fraction=0.9, eager=4, compiled=2, selection=0.05, over_eager=1)
    targets = dataclasses.replace(targets, over_no_op=0.9, in_bf16=1.6)
    times = {"ours": 1.0, "eager": 5.0, "compiled": 2.5, "in_bf16": 1.7, "no_op": 0.2}
    times |= {"one_thread": 1.95, "clocked": 1.9}
    good = Row("op", "size", 2, times, selecting=0.09, at_peak=0.95, targets=targets)
    bad = dataclasses.replace(good, times=times | {"ours": 2.0}, selecting=0.1)
    all_met = list(goals([good], [], {1: 1.0, 2: 1.05}, 2**20))
    assert [goal.met for goal in all_met] == [True] * 10
    at_peak = [goal.at_peak for goal in all_met if goal.at_peak is not None]
    assert at_peak == pytest.approx([5.0 / 0.95, 2.5 / 0.95, 1.7 / 0.95])
    missed = list(goals([bad], [], {1: 1.0, 2: 1.2}, 2**30))
    assert [goal.what for goal in missed if goal.met] == ["more than torch eager"]
    assert len(missed) == 10


def test_run_that_is_interrupted_keeps_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = iter([Row("add_custom", "first", 1, {"ours": 1e-6, "eager": 1e-6})])

    def measure(*_: object) -> Row:
        for row in rows:
            return row
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "measure", measure)
    monkeypatch.setattr(Peaks, "measure", lambda self: {})
    output = tmp_path / "out" / "run"
    with pytest.raises(KeyboardInterrupt):
        cpu.main(["--quick", "--no-compile", "--only", "[16]", "--output", str(output)])
    run = json.loads(output.with_suffix(".json").read_text())
    assert [row["size"] for row in run["results"]] == ["first"]


def test_run_writes_json_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out" / "run"
    arguments = ["--quick", "--no-compile", "--only", "[16]", "--output", str(output)]
    assert cpu.main(arguments) == 0
    run = json.loads(output.with_suffix(".json").read_text())
    assert [row["op"] for row in run["results"]] == ["add_custom", "add_custom"]
    assert all(row["ours"] > 0 for row in run["results"])
    assert [goal["unit"] for goal in run["goals"]] == ["us", "us"]
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "reading memory" in capsys.readouterr().out

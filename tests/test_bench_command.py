"""custom-pypto bench, on the installed ops."""

import json
import timeit
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from custom_pypto import core
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_plugin import SampleInput
from custom_pypto_testing.case import Case
from custom_pypto_testing.ops_under_test import op_of_plugin
from custom_pypto_testing.timing import peaks, sample
from custom_pypto_testing.timing.interleaved import Timed, time_interleaved
from custom_pypto_testing.timing.peaks import Peak, Work, at_peak
from custom_pypto_testing.timing.sample import measure_call

MEASURED = {
    "op": "add_custom",
    "times": {"ours": [1e-6, 2e-6, 3e-6], "reference": [3e-6, 4e-6, 5e-6]},
    "at_peak": 1e-6,
}


FOUND: dict[tuple[Any, ...], Outcome] = {}
Bench = Callable[..., str]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Run the command, each of whose samples ends as `measure` says; return what it printed."""
    call = subprocess_call.call

    def run(measure: Callable[..., Outcome], *options: str, status: int = 0) -> str:
        def one(function: Any, *given: Any, **options: Any) -> Outcome:
            if function.__name__ == "measure":
                return measure(*given)
            # Finding the samples takes seconds.
            if given not in FOUND:
                FOUND[given] = call(function, *given, **options)
            return FOUND[given]

        monkeypatch.setattr(subprocess_call, "call", one)
        assert main(["bench", *options]) == status
        printed = capsys.readouterr()
        return printed.out or printed.err

    return run


def measured(sample: str) -> Outcome:
    return Outcome(value={**MEASURED, "sample": sample})


def test_times_a_sample_against_reference_and_peak() -> None:
    found = measure_call("add_custom", "add_custom", "float32", seconds=0)
    assert found.arguments == "self=float32[7, 33], other=float32[7, 33]"
    assert (found.flops, found.bytes) == (0, 3 * 4 * 7 * 33)
    # Such small data is not bound by memory.
    assert found.at_peak is None
    for low, middle, high in found.times.values():
        assert 0 < low <= middle <= high
    assert {"ours", "reference"} <= found.times.keys()


def test_a_reference_by_a_hook_is_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(torch, "compile", lambda function: compiled.append(function) or function)
    found = measure_call("advance_step", "npu_advance_step_flashattn", "full", seconds=0)
    assert "compiled" in found.times
    assert compiled == [core.reference("npu_advance_step_flashattn").function]


def test_work_that_a_contract_does_not_say_is_that_of_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sample, "evaluate_cost", lambda op, tree, given: None)
    op = "npu_mla_prolog"
    found = measure_call("sparse_attention", op, "small", seconds=0, compiles=False)
    tensors = [*case_of(op, "small").tensors.values()]
    x, weight = tensors[:2]
    # More than the first of its products.
    assert found.flops > 2 * x.numel() * weight.shape[1]
    assert found.bytes > sum(each.nbytes for each in tensors)
    assert found.at_peak > 0


def test_a_reference_that_takes_long_to_compile_is_left_out(bench: Bench) -> None:
    compiles = []
    slow = Outcome(failure="did not end within 60 s", timed_out=True)

    def measure(*given: Any) -> Outcome:
        compiles.append(given[-1])
        return slow if given[-1] else measured("float32")

    lines = bench(measure, "add_custom_backward", "--sample", "float").splitlines()
    assert len(lines) == 1 + len(compiles) - 1
    assert compiles == [True, False, *([False] * (len(compiles) - 2))]


def case_of(op: str, sample: str) -> Case:
    return next(each for each in op_of_plugin(op, "cpu").cases if each.sample.name == sample)


def test_each_call_finds_what_the_op_writes_to_as_it_was() -> None:
    case = case_of("npu_advance_step_flashattn", "full")
    seen: list[list[int]] = []

    def advance(*args: Any, **kwargs: Any) -> None:
        given = replace(case, sample=SampleInput(args, kwargs))
        seen.append(given.arguments["seq_lens"].tolist())
        given.run()

    timed = sample._on_copies(case, advance)
    timed.run()
    timed.seconds(1)
    assert seen == [case.arguments["seq_lens"].tolist()] * 2


def test_a_line_has_the_median_the_spread_and_the_fraction_of_the_peak(bench: Bench) -> None:
    printed = bench(lambda *given: measured("large"), "add_custom", "--sample", "large")
    _, line, _ = printed.splitlines()
    assert line.split() == ["2.0", "us", "100%", "4.0", "us", "-", "0.500", "add_custom", "large"]


def test_what_was_measured_is_printed_before_the_next_sample(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = Mock(side_effect=[measured("large"), KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        bench(measure, "add_custom", "--sample", "large", "--json")
    assert json.loads(capsys.readouterr().out) == {**MEASURED, "sample": "large"}


def test_a_sample_that_fails_does_not_stop_the_others(bench: Bench) -> None:
    measure = Mock(side_effect=[Outcome(failure="crashed with SIGSEGV"), measured("large")])
    lines = bench(measure, "add_custom", "--sample", "large", status=1).splitlines()
    assert lines[1] == "add_custom large: problem: crashed with SIGSEGV"
    assert lines[2].endswith("  add_custom large")


def test_an_unknown_sample_is_an_error_with_those_that_there_are(bench: Bench) -> None:
    text = bench(Mock(), "add_custom", "--sample", "nothing", status=1)
    assert text.startswith("custom-pypto bench: no sample's name contains 'nothing'; there are: f")


def test_interleaved_calls_are_prepared_and_run_on_their_own_number_of_threads() -> None:
    before = torch.get_num_threads()
    seen: list[tuple[str, int]] = []

    def note(name: str) -> None:
        seen.append((name, torch.get_num_threads()))

    calls = {
        "one": Timed(lambda: note("one"), threads=1),
        "prepared": Timed(lambda: note("prepared"), lambda: note("preparing")),
    }
    times = time_interleaved(calls, 0, warmups=0, warm=False, least=2)
    names = ("preparing", "prepared")
    assert {*seen} == {("one", 1), *((name, before) for name in names)}
    assert [seen.count((name, before)) for name in names] == [3, 3]
    assert torch.get_num_threads() == before
    assert all(low <= middle <= high for low, middle, high in times.values())


def test_a_step_takes_as_long_as_its_slower_peak() -> None:
    found = {"flops": Peak(lambda: None, 1000), "bytes": Peak(lambda: None, 10)}
    times = {"flops": [0.5, 1.0, 2.0], "bytes": [0.5, 1.0, 2.0]}
    steps = (Work(flops=3000, bytes=10), Work(flops=1000, bytes=50))
    assert at_peak(steps, found, times) == pytest.approx(3 + 5)
    assert at_peak(steps, {"flops": found["flops"]}, times) is None
    assert at_peak((), found, times) is None


def test_peaks_do_the_work_that_they_count() -> None:
    found = [peaks.multiply_adds(None, dtype) for dtype in (torch.bfloat16, torch.float32)]
    for peak in (peaks.reading(), *found):
        assert peak is not None
        # No machine is as fast as a loop that is left out.
        rate = peak.amount / timeit.timeit(peak.call, number=1)
        assert 0 < rate < 1e13 * torch.get_num_threads()

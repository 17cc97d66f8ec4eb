"""The test class: which tests it makes of ops and samples, and what it does when it cannot."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from custom_pypto_build import compiler
from custom_pypto_build.settings import ISA_KINDS
from custom_pypto_testing import Conformance, checks
from custom_pypto_testing.every_isa import every_isa
from custom_pypto_testing.ops_under_test import Op, ops_of_plugin
from custom_pypto_testing.sample_generator import NoCallError
from faulty_ops import TWICE, case, registered
from fork_server import ForkServer
from manifests import contract_of

SUITE = """
from typing import Any

import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import Conformance, Op

library = torch.library.Library("custom_pypto_testing_ops", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x.contiguous() * 2, "CPU")
torch.library.register_fake(
    "custom_pypto_testing_ops::twice",
    lambda x: torch.empty_like(x, memory_format=torch.contiguous_format),
)


def samples(device: str) -> Any:
    assert device == "cpu", f"no samples on {device}"
    yield SampleInput(
        (torch.arange(6.0),), name="small", resized=SampleInput((torch.arange(9.0),))
    )
    yield SampleInput((torch.arange(8.0).view(2, 4).t(),), name="transposed")
    yield SampleInput((torch.arange(3.0, dtype=torch.float64),), name="float64")


def reference(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class TestTwice(Conformance):
    @classmethod
    def ops(cls, device: str) -> list[Op]:
        overload = torch.ops.custom_pypto_testing_ops.twice.default
        return [Op(overload, tuple(samples(device)), Reference(reference), device=device)]
"""

SAMPLES = ["small", "transposed", "float64"]
"""The graph of the last one is that of the first."""
IDS = {
    "test_holds_when_fuzzed": ["twice"],
    "test_takes_any_strides": [f"twice-{name}" for name in SAMPLES],
    "test_compiles": [f"twice-{name}" for name in SAMPLES[:2]],
    "test_exports_with_dynamic_sizes": ["twice-small"],
    "test_writes_slices_with_inductor": ["twice-small"],
    "test_gradients": ["no-differentiable-op"],
    "test_works_on_streams_and_in_graphs_of_an_npu": ["no-npu"],
}
"""By a test for each fixture, what it runs for."""


Run = Callable[..., tuple[dict[str, str], str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run a suite; give the outcome of each test, by its name without file and class, and what
    pytest printed."""
    folder = tmp_path_factory.mktemp("suites")
    server = ForkServer([], folder, options=("-W", "error"), imports="import pytest, torch._dynamo")

    def run_it(suite: str, *options: str) -> tuple[dict[str, str], str]:
        (folder / "test_suite.py").write_text(suite, encoding="utf-8")
        given = [
            *("-v", "-W", "error", "-p", "no:cacheprovider", "-p", "custom_pypto_testing.plugin"),
            *("--rootdir", str(folder), *options, str(folder)),
        ]
        code = f"import os, pytest; os.chdir({str(folder)!r}); pytest.main({given})"
        printed = server.run(code, [], {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"})
        lines = (line.split() for line in printed.stdout.splitlines())
        found = (line for line in lines if line[1:] and line[0].startswith("test_suite.py::"))
        return {line[0].split("::")[-1]: line[1] for line in found}, printed.stdout + printed.stderr

    yield run_it
    server.close()


@pytest.fixture(scope="module")
def right(run: Run) -> tuple[dict[str, str], str]:
    return run(SUITE)


def test_right_op_passes_every_test(right: tuple[dict[str, str], str]) -> None:
    outcomes, printed = right
    assert set(outcomes.values()) == {"PASSED"}, printed


@pytest.mark.parametrize("test", IDS)
def test_a_check_is_one_test_for_each_op_sample_or_graph(
    right: tuple[dict[str, str], str], test: str
) -> None:
    found = [each for each in right[0] if each.startswith(f"{test}[")]
    assert found == [f"{test}[{name}]" for name in IDS[test]]


def test_no_test_is_left_out(right: tuple[dict[str, str], str]) -> None:
    tests = {name for name in vars(Conformance) if name.startswith("test_")}
    assert {each.partition("[")[0] for each in right[0]} == tests


def test_what_was_not_checked_stands_at_the_end(right: tuple[dict[str, str], str]) -> None:
    _, printed = right
    end = printed.partition("= not checked =")[2]
    assert "\ntwice: threads: no call was split among threads, neither a sample nor" in end


BROKEN = """
def broken(x):
    if x.shape[0] == 4:
        raise ValueError("no four")
    with torch.no_grad():
        x[:1] = 7
    return x.double() * torch.get_num_threads()


library = torch"""


@pytest.fixture(scope="module")
def failures(run: Run) -> dict[str, list[str]]:
    """The lines that pytest prints of each failure, by the name of the test."""
    suite = SUITE.replace("lambda x: x.contiguous() * 2", "broken")
    suite = suite.replace("library = torch", BROKEN, 1)
    _, printed = run(suite, "-k", "not inductor")
    report = printed.partition("= FAILURES =")[2].partition("= not checked =")[0]
    _, *parts = re.split(r"^_+ (?:TestTwice\.)?(\S+) _+$", report, flags=re.MULTILINE)
    return dict(zip(parts[::2], (part.strip().splitlines() for part in parts[1::2]), strict=True))


def test_failure_shows_frames_of_the_author_alone(failures: dict[str, list[str]]) -> None:
    assert len(failures) > 15
    lines = [line for each in failures.values() for line in each]
    frames = {line.partition(":")[0] for line in lines if re.search(r":\d+: in ", line)}
    assert [Path(each).name for each in frames] == ["test_suite.py"]
    assert [line for line in lines if "torch.__trace" in line] == []


def test_failure_of_a_check_is_its_message(failures: dict[str, list[str]]) -> None:
    error, hidden = failures["test_returns_what_the_reference_returns[twice-small]"]
    assert error == "E   AssertionError: output: dtype is torch.float64, expected torch.float32"
    assert "--full-trace" in hidden


def test_failure_of_the_op_names_the_line_of_the_author(failures: dict[str, list[str]]) -> None:
    frame, code, error = failures["test_fake_agrees_with_kernel[twice-transposed]"]
    assert re.search(r"test_suite\.py:\d+: in broken$", frame)
    assert (code, error) == ('    raise ValueError("no four")', "E   ValueError: no four")


def test_plugin_that_is_not_installed_is_a_failure() -> None:
    message = "no plugin named 'no_such_plugin' is installed; installed: "
    with pytest.raises(AssertionError, match=message):
        ops_of_plugin("no_such_plugin", "cpu")


def test_samples_are_made_on_the_chosen_device(run: Run) -> None:
    outcomes, printed = run(SUITE, "--custom-pypto-device=npu")
    assert set(outcomes.values()) == {"ERROR"}
    assert "test_passes_opcheck[unavailable-npu]" in outcomes
    assert "no samples on npu" in printed


EMPTY = """
import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import Conformance, Op

library = torch.library.Library("custom_pypto_testing_ops", "DEF")
library.define("scalar(int x) -> int")
library.impl("scalar", lambda x: x, "CompositeExplicitAutograd")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")
library.impl("twice", lambda x: x * 2, "AutogradCPU")
ops = torch.ops.custom_pypto_testing_ops
x = SampleInput((torch.ones(2),), name="s", resized=SampleInput((torch.ones(3),)))
scalar = Op(ops.scalar.default, (SampleInput((2,), name="s"),), Reference(lambda x: x))


class TestOps(Conformance):
    @classmethod
    def ops(cls, device: str) -> list[Op]:
        return [scalar, Op(ops.twice.default, (x,))]
"""


def test_test_without_a_case_is_never_skipped(run: Run) -> None:
    outcomes, printed = run(EMPTY, "-k", "exports or test_gradients or agrees_with_its_contract")
    assert "SKIPPED" not in outcomes.values()
    assert outcomes["test_gradients[twice-no-sample]"] == "ERROR"
    assert outcomes["test_exports_with_dynamic_sizes[scalar-no-tensors]"] == "PASSED"
    assert "twice is differentiable but has no float64 sample" in printed
    end = printed.partition("= not checked =")[2]
    assert "\nscalar: dynamic sizes: the op takes no tensors" in end
    assert "\nscalar: random calls, refusals, memory, fuzzing: ops.toml does not describe" in end


def test_what_opcheck_cannot_check_is_noted() -> None:
    notes: list[str] = []
    x = torch.ones(2)
    with registered(TWICE, torch.clone, fake=torch.empty_like) as op:
        for each in (x, x.to(torch.float8_e4m3fn), x.to("meta")):
            made = case(op, each)
            Conformance().test_passes_opcheck(made, notes.append)
    texts = ("test_schema: torch compares", "test_autograd_registration: torch has it for tensors")
    for text, note in zip(texts, notes, strict=True):
        assert note.startswith(f"{made.id}: opcheck: {text} ")


def test_documentation_names_every_test() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    tests = [name for name in vars(Conformance) if name.startswith("test_")]
    assert tests
    assert [name for name in tests if f"| `{name}` |" not in documented] == []


def test_only_for_an_npu_may_no_random_call_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw_nothing(op: Op) -> None:
        raise NoCallError(contract_of(f'[twice]\nschema = "{TWICE}"\ntensors.x.dtype = "int8"'))

    monkeypatch.setattr(checks, "left_out", lambda op: [])
    monkeypatch.setattr(checks, "check_drawn", draw_nothing)
    notes: list[str] = []
    check = Conformance().test_agrees_with_its_contract
    on_npu, on_cpu = (SimpleNamespace(name="twice", device=device) for device in ("npu", "cpu"))
    check(cast(Op, on_npu), notes.append)
    assert notes[0].startswith("twice: random calls: twice: none of")
    with pytest.raises(NoCallError, match="none of"):
        check(cast(Op, on_cpu), notes.append)


def test_every_isa_is_each_that_has_compiler_flags() -> None:
    flags = {
        isa for machine in ("x86_64", "aarch64") for isa in compiler.isa_flags(machine, ISA_KINDS)
    }
    assert "portable" in flags
    assert sorted(every_isa()) == sorted(flags)

"""The fuzzer: right ops pass, each fault is found, and each call can be repeated."""

import os
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from custom_pypto.core.contracts.evaluation import Evaluation
from custom_pypto_contract.contract import OpContract as Contract
from custom_pypto_plugin import SampleInput
from custom_pypto_testing import checks, fuzz_oracle
from custom_pypto_testing.case import Case
from custom_pypto_testing.fuzz_inputs import HUGE, FuzzCall, _resized, fuzz_call
from custom_pypto_testing.fuzz_oracle import REASONS, Outcome
from custom_pypto_testing.fuzzing import Series, Tally, fuzz, report
from custom_pypto_testing.large_calls import kept_dims
from custom_pypto_testing.ops_under_test import Op
from faulty_ops import TENSORS_OF_PLUS, registered
from manifests import contract_of
from torch import Tensor

PLUS = f"""
[plus]
schema = "plus(Tensor x, Tensor y, int k=1) -> Tensor"
outputs.sum = {{ shape = "M N", dtype = "=x" }}
{TENSORS_OF_PLUS}
"""
COPY_TO = """
[copy_to]
schema = "copy_to(Tensor(a!) x, Tensor rows) -> ()"
tensors.x = { shape = "N", dtype = "float32" }
tensors.rows = { shape = "M", dtype = "int64", values = "0 .. N - 1" }
"""
FEW = Series(calls=600)


def check_call(contract: Contract, *args: Any) -> None:
    given = dict(zip((each.name for each in contract.arguments), args, strict=True))
    for name, value in given.items():
        if value is None:
            raise RuntimeError(f"{contract.name}: argument '{name}' must be a tensor, got None")
    Evaluation(contract, given).run_checks()


def zeros_as(x: Tensor, dtype: torch.dtype) -> Tensor:
    try:
        # A huge tensor has one element in memory.
        return x.new_zeros(x.shape, dtype=dtype)
    except RuntimeError as error:
        raise RuntimeError(f"plus: {error}") from error


def plus(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
    check_call(contract_of_plus, x, y, k)
    return zeros_as(x, x.dtype)


def copy_to(x: Tensor, rows: Tensor) -> None:
    check_call(contract_of_copy_to, x, rows)


contract_of_plus, contract_of_copy_to = contract_of(PLUS), contract_of(COPY_TO)


def fuzzed(
    kernel: Callable[..., Any],
    fake: Callable[..., Any] = plus,
    contract: Contract = contract_of_plus,
    series: Series = FEW,
    time_limit: float = 60,
) -> tuple[Tally, str]:
    """What the fuzzer finds, and its report."""
    with registered(contract.schema.text, kernel, fake=fake) as overload:
        op = Op(overload, contract=contract)
        tally = fuzz(op, series, time_limit)
        return tally, report(op, tally)


def is_rare(k: object) -> bool:
    """Whether it is a value that one of many calls has."""
    return type(k) is int and k == 2**31 - 1


def test_calls_of_a_right_op_are_counted() -> None:
    rows: dict[str, Any] = {}
    with registered(contract_of_plus.schema.text, plus, fake=plus) as overload:
        checks.check_fuzzed(Op(overload, contract=contract_of_plus), FEW, rows.__setitem__)
    row = rows["fuzzed"]
    assert (row["op"], row["calls"], row["disagreements"]) == ("plus", FEW.calls, 0)
    assert row["accepted"] + row["refused"] == FEW.calls
    assert min(row["accepted"], row["refused"], row["too large"]) > FEW.calls / 50


def has_to_be(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
    try:
        return plus(x, y, k)
    except RuntimeError as error:
        raise RuntimeError(str(error).replace("must be", "has to be")) from error


def raising(error: Exception) -> Callable[..., Tensor]:
    def refuse(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
        if is_rare(k):
            raise error
        return plus(x, y, k)

    return refuse


def giving(change: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda x, y, k=1: change(plus(x, y, k))


def write_before_refusing(x: Tensor, rows: Tensor) -> None:
    check_call(contract_of_copy_to, x, rows)
    wrong = ((rows < 0) | (rows >= len(x))).nonzero()
    x[rows[: int(wrong[0])] if len(wrong) else rows] += 1
    if len(wrong):
        raise RuntimeError("copy_to: argument 'rows' must be rows of x")


ERRORS = [RuntimeError("boom"), RuntimeError("minus: argument 'k'"), MemoryError("plus: no memory")]
SAYS, ACCEPTS = "says \"plus: argument 'y' must ", "the kernel accepts it: ["
FAULTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "kernel that checks nothing": (SAYS, (lambda x, y, k=1: torch.zeros(x.shape, dtype=x.dtype),)),
    "fake that checks nothing": (
        f"the kernel {SAYS}",
        (plus, lambda x, y, k=1: torch.empty_like(x)),
    ),
    "fake with another shape": (ACCEPTS, (plus, giving(lambda right: right[..., None]))),
    "fake with another dtype": (ACCEPTS, (plus, giving(lambda right: right.to(torch.float64)))),
    "fake with other strides": (
        ACCEPTS,
        (plus, giving(lambda right: right.new_zeros(right.shape[::-1]).permute(1, 0))),
    ),
    "fake on meta with another text": ('the fake on meta says "plus: argument', (plus, has_to_be)),
    "fake with another text": ('; the fake says "plus: argument', (plus, has_to_be)),
    # Kernel and fake agree.
    **{
        f"{error!r} that is none of the op": (
            f"no error of the op: the kernel raises {type(error).__name__}: {error}",
            (raising(error), raising(error)),
        )
        for error in ERRORS
    },
    "write before a refusal": (
        "'x' is written before the kernel refuses: it says \"copy_to: argument 'rows'",
        (write_before_refusing, copy_to, contract_of_copy_to, Series(300)),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(fault: str) -> None:
    message, given = FAULTS[fault]
    tally, text = fuzzed(*given)
    assert message in text or any(message in each for _, each in tally.faults)
    assert len(tally.faults) > FEW.calls / 10 or "nothing" not in fault


@pytest.mark.parametrize("values", ["int64", "float32"])
def test_refusal_of_values_is_explained_for_lengths_and_indices_only(values: str) -> None:
    contract = contract_of(PLUS.replace('"=x"', f'"{values}"'))

    def fake(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
        check_call(contract, x, y, k)
        return zeros_as(x, getattr(torch, values))

    def kernel(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
        made = fake(x, y, k)
        if not y.is_meta and (y.abs() > 1e9).any():
            raise RuntimeError("plus: argument 'y' must be small")
        return made

    tally, text = fuzzed(kernel, fake, contract)
    is_explained = values == "int64"
    assert (tally.counts["values"] > 0) == is_explained, text
    assert (not tally.faults) == is_explained, text


@pytest.mark.parametrize(
    ("how", "end"), [("by SIGABRT", os.abort), ("with status 0", lambda: os._exit(0))]
)
def test_call_that_ends_the_process_stops_no_other(how: str, end: Callable[[], None]) -> None:
    first = Series(calls=250)

    def kernel(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
        if is_rare(k):
            os.write(2, b"last words\n")
            end()
        return plus(x, y, k)

    tally, text = fuzzed(kernel, series=first)
    numbers = [number for number, _ in tally.faults]
    assert 1 < len(numbers) < 5, "more calls are run after the first that ends the process"
    assert tally.counts["run"] == first.calls
    assert {fault for _, fault in tally.faults} == {f"the process ends {how}: last words"}
    assert f"--custom-pypto-fuzz=1,0,{numbers[0]};" in text
    assert ", k=2147483647" in text
    assert fuzzed(kernel, series=Series(1, 0, numbers[-1]))[0].faults == [tally.faults[-1]]


def test_call_that_ends_every_process_does_not_go_on_for_ever() -> None:
    tally, _ = fuzzed(lambda x, y, k=1: os._exit(1))
    assert [text for _, text in tally.faults] == ["the process ends with status 1: "] * 5


def test_call_that_takes_too_long_is_found() -> None:
    def kernel(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
        time.sleep(60 * is_rare(k))
        return plus(x, y, k)

    tally, text = fuzzed(kernel, series=Series(calls=100), time_limit=2)
    assert "is still in this call after 2 seconds" in text
    assert tally.counts["run"] == 100


def test_page_lists_the_reasons() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    table = page.partition("\n| reason |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE) == [*REASONS]


@cache
def many_calls() -> list[Any]:
    with registered(contract_of_plus.schema.text, plus, fake=plus) as overload:
        op = Op(overload, contract=contract_of_plus)
        return [fuzz_call(op, 0, each) for each in range(3000)]


def test_every_change_and_size_is_drawn() -> None:
    drawn = many_calls()
    kinds = {change.split(" of ")[0] for each in drawn for change in each.changes}
    assert kinds == {
        *("valid", "any", "huge", "scalar", "presence", "dtype", "transposed", "strided"),
        *("sliced", "expanded", "resized", "empty", "ndim", "conjugate", "negative", "inference"),
        *("gradient", "device", "shared", "values"),
    }
    sizes = {size for each in drawn for t in each.call.tensors.values() for size in t.shape}
    assert {0, 1, *HUGE} <= sizes
    assert {len(each.changes) for each in drawn} == {1, 2, 3}
    numbers = {each.call.kwargs["k"] for each in drawn}
    assert {0, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63)} <= numbers


def test_a_resized_argument_fits_into_memory() -> None:
    empty = torch.empty(2, 2**20, 0, device="cpu")
    with pytest.raises(ValueError, match="does not fit into memory"):
        assert all(_resized(empty, Random(seed), {}) is not None for seed in range(30))


def test_some_calls_are_a_sample_where_the_contract_has_no_outputs() -> None:
    contract = contract_of(re.sub("outputs.*", "", PLUS))
    sample = SampleInput((torch.full((3, 7), 5.0, device="cpu"), torch.ones(7, device="cpu")))
    with registered(contract.schema.text, plus, fake=plus) as overload:
        op = Op(overload, (sample,), contract=contract)
        drawn = [fuzz_call(op, 0, each) for each in range(500)]
    right = [each.call.kwargs["x"] for each in drawn if each.changes == ("valid",)]
    assert 0 < sum(torch.equal(each, sample.args[0]) for each in right) < len(right)


IS_CHANGED: dict[str, Callable[[Tensor, Tensor], bool]] = {
    "transposed": lambda x, y: x.ndim <= 2,
    "strided": lambda x, y: x.ndim <= 2,
    "sliced": lambda x, y: x.numel() < x.untyped_storage().nbytes() // x.element_size(),
    "expanded": lambda x, y: 0 in x.stride() or 1 in x.shape,
    "resized": lambda x, y: x.is_contiguous(),
    "empty": lambda x, y: x.numel() == 0,
    "conjugate": lambda x, y: x.is_conj(),
    "negative": lambda x, y: x.is_neg(),
    "inference": lambda x, y: x.is_inference(),
    "gradient": lambda x, y: x.requires_grad,
    "device": lambda x, y: x.is_meta,
    "shared": lambda x, y: x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr(),
}


@pytest.mark.parametrize("change", IS_CHANGED)
def test_change_of_a_right_call_is_what_its_name_says(change: str) -> None:
    for argument, other in ("xy", "yx"):
        changes = ("valid", f"{change} of {argument}")
        drawn = [each.call.kwargs for each in many_calls() if each.changes == changes]
        assert drawn
        assert all(IS_CHANGED[change](given[argument], given[other]) for given in drawn)


COPY = '"copy_cpu" not implemented for such a dtype'


@pytest.mark.parametrize(
    ("reason", "text", "change", "ok"),
    [
        ("torch's copy", COPY, "negative of x", True),
        ("torch's copy", COPY, "conjugate of x", True),
        ("torch's copy", COPY, "dtype of x", False),
        ("memory", "plus: there is not enough memory", "expanded of x", True),
        ("memory", "plus: numel: integer multiplication overflow", "both", True),
        ("memory", "plus: 2 + 3, which does not fit into 64 bits", "both", True),
        ("memory", "plus: 2 + 3, which does not fit into 64 bits", "the kernel alone", False),
        ("memory", "minus: there is not enough memory", "expanded of x", False),
    ],
)
def test_a_reason_explains_its_own_refusals(reason: str, text: str, change: str, ok: bool) -> None:
    drawn = FuzzCall(many_calls()[0].call, ("valid", change))
    kernel, accepts = Outcome(None, RuntimeError(text)), Outcome([], None)
    assert REASONS[reason](drawn, kernel, kernel if change == "both" else accepts) == ok


@pytest.mark.parametrize("text", ["", "0", "-1", "1,-1", "1,2,3,4", "many"])
def test_series_is_read_or_refused(text: str) -> None:
    assert Series.parse("7,2,30") == Series(7, 2, 30)
    with pytest.raises(ValueError, match=r"CALLS|invalid literal"):
        Series.parse(text)


@pytest.mark.parametrize(("elements", "expected"), [(8, False), (2**23, True), (2**45, False)])
def test_a_call_with_outputs_that_take_hours_is_left_out(elements: int, expected: bool) -> None:
    fake = Outcome([((elements,), (1,), torch.float32)], None)
    call = Case(Op(torch.ops.aten.neg.default), SampleInput((torch.ones(1),)))
    assert fuzz_oracle._is_too_large(call, fake) is expected


def test_sums_are_over_dims_that_no_result_has() -> None:
    assert kept_dims(contract_of(PLUS)) == {"M", "N"}

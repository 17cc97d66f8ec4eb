"""An op against its contract: random right calls, and calls that break one rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

from custom_pypto.core.contracts import evaluate_cost

from custom_pypto_testing.case import Case, describe_arguments, refusal_of
from custom_pypto_testing.drawn_samples import as_sample, drawn_calls
from custom_pypto_testing.large_calls import calls_with_rest
from custom_pypto_testing.meta_tensors import Twins
from custom_pypto_testing.sample_generator import Arguments
from custom_pypto_testing.violations import untested_rules, violations

from .fakes import compare_fake
from .values import compare_with_reference, filled_memory, run_of

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract as Contract

    from custom_pypto_testing.ops_under_test import Op


def check_drawn(op: Op) -> None:
    """Random calls that the contract allows agree with reference and fake."""
    for case in drawn_cases(op):
        given = case.arguments
        if op.contract is not None:
            _check_costs(op.contract, given)
        try:
            with filled_memory():
                run = run_of(case.copy())
            compare_with_reference(case, run)
            compare_fake(case, run.returned)
        except (AssertionError, RuntimeError) as error:
            called = f"{op.name}, called with {describe_arguments(given)}"
            raise AssertionError(f"{called}: {error}") from error


def drawn_cases(op: Op) -> Iterator[Case]:
    """Yield random calls that the contract allows, on the op's device.

    Raises:
        DrawingError: nothing that it allows was found.
    """
    if op.contract is None:
        return
    calls = drawn_calls(op.contract, device=op.device)
    if op.device == "cpu":
        calls = chain(calls, calls_with_rest(op.contract))
    for number, drawn in enumerate(calls):
        given, is_odd = Case.of(op, drawn).on(op.device).arguments, number % 2 == 1
        yield Case(op, as_sample(op.contract, given, f"drawn-{number}", by_name=is_odd))


def _check_costs(contract: Contract, given: Arguments) -> None:
    for key, tree in (("flops", contract.flops), ("bytes", contract.bytes)):
        if tree is None:
            continue
        try:
            cost = evaluate_cost(contract, tree, given)
        except TypeError:
            # The formula calculates with None: the call does not have that dim.
            cost = None
        if cost is None or cost < 0:
            raise AssertionError(
                f"{contract.name}, called with {describe_arguments(given)}: {key!r} in ops.toml"
                f" is {cost}, and must be 0 or more; it may use a dim that this call does not have,"
                " or lack the value of an argument that chooses"
            )


def check_refusals(op: Op, note: Callable[[str], None]) -> None:
    """Calls that break a rule are refused by kernel and fake in the same words.

    The error names the op and the argument. `note` is told of rules that no drawn call breaks, or
    satisfies.
    """
    if op.contract is None:
        return
    broken = set()
    for each in violations(op.contract, Random(op.name)):
        broken.add(each.rule)
        if each.rule == "values" and op.device != "cpu":
            continue  # a launch reads none
        given = Case.of(op, each.given).on(op.device).arguments
        call = Case.of(op, given)
        of_kernel = refusal_of(call.run)
        texts = [("the kernel", of_kernel)]
        if each.rule != "values":
            # Where one is on meta, the dispatcher calls the fake. FakeTensorMode takes longer.
            is_mixed = any(tensor.is_meta for tensor in call.tensors.values())
            texts.append(("the fake", refusal_of((call if is_mixed else call.map(Twins())).run)))
        what = f"{op.name}, with {each.rule} of argument '{each.argument}' broken"
        # A rule for each tensor of a list names the first that breaks it.
        index = r"(\[\d+\])?" if each.rule.startswith("rule ") else ""
        named = rf"{re.escape(op.name)}: argument '{re.escape(each.argument)}{index}' "
        for who, text in texts:
            if re.match(named, text) is None:
                raise AssertionError(
                    f"{what}: {who} must refuse it and name the argument, but"
                    f" {f'says {text!r}' if text else 'takes it'}; {describe_arguments(given)}"
                )
            if text != of_kernel:
                raise AssertionError(f"{what}: the kernel says {of_kernel!r}, the fake {text!r}")
    for rule in untested_rules(op.contract, broken):
        note(rule)

"""Arguments with other strides."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto.core.contracts import bind_arguments
from custom_pypto.core.contracts.evaluation import Evaluation

from custom_pypto_testing.case import Case
from custom_pypto_testing.layouts import Layout, layouts_of
from custom_pypto_testing.outputs import Run

from .fakes import compare_fake_on_meta
from .values import compare_mutated, compare_returned

_LARGE = 2**16
"""With more elements, a call gets two layouts. Drawn calls are small, and have the others."""


def check_strides(case: Case) -> None:
    """A strided argument gives the result of the sample.

    Each tensor argument in turn gets each layout that its contract allows. The op may write nothing
    beside its elements. The fake's outputs must be like the kernel's for these strides, too. Where
    no contract speaks of the argument, the op may refuse it by a RuntimeError that names it and
    says "contiguous".
    """
    plain = case.copy()
    returned = plain.run()
    for name, tensor in plain.tensors.items():
        declared = _declared_strides(case, name)
        layouts = [*layouts_of(declared or "any", tensor.shape)]
        if sum(each.numel() for each in plain.tensors.values()) > _LARGE:
            layouts = [*dict.fromkeys((layouts[0], layouts[-1]))]
        for layout in layouts:
            try:
                call, actual = _run_with(case, name, layout, may_refuse=declared is None)
                if call is None:
                    continue
                run = Run(actual, call.mutable)
                # An author's comparison may take long.
                if not run.equals(Run(returned, plain.mutable)):
                    compare_returned(case, actual, returned)
                    compare_mutated(case, call.mutable, plain.mutable)
                # Dims in reverse, where there is such a layout: a fake is slow.
                if layout is layouts[-1]:
                    compare_fake_on_meta(case, call, actual)
            except AssertionError as error:
                raise AssertionError(
                    f"{case.name} with argument '{name}' that has {layout}: {error}"
                ) from None


def _declared_strides(case: Case, name: str) -> str | None:
    """Return what ops.toml says of an argument's strides; None if it describes no such tensor."""
    tensors = () if case.op.contract is None else case.op.contract.tensors
    return next((each.strides for each in tensors if each.name == name.partition("[")[0]), None)


def _run_with(
    case: Case, name: str, layout: Layout, *, may_refuse: bool
) -> tuple[Case | None, Any]:
    """Return the call with an argument in `layout`, and its result; None if it is refused."""
    call = case.copy()
    given = call.tensors[name]
    memory = layout.memory(given)
    strided = layout.view(memory, given.shape).copy_(given)
    before = memory.clone()
    call = call.replace({name: strided})
    try:
        returned = call.run()
    except RuntimeError as error:
        if _is_refused_by_rules(case, call):
            return None, None
        if f"'{name}'" not in str(error) or "contiguous" not in str(error):
            raise
        if may_refuse:
            return None, None
        raise AssertionError(
            "ops.toml allows such strides, but the op says:"
            f' {error}; take them, or declare strides = "contiguous", or "last_dim_contiguous"'
        ) from None
    layout.view(before, given.shape).copy_(strided)
    if not memory.view(torch.uint8).equal(before.view(torch.uint8)):
        raise AssertionError("the kernel wrote between the argument's elements")
    return call, returned


def _is_refused_by_rules(case: Case, call: Case) -> bool:
    """Return whether a rule of ops.toml, or a limit of NPU kernels, refuses the call."""
    op = case.op.contract
    if op is None or not op.tensors:
        return False
    evaluation = Evaluation(op, bind_arguments(op, call.args, call.kwargs))
    try:
        evaluation.run_checks()
        for limits in () if case.is_on_cpu else op.npu.limits.values():
            evaluation.run_rules(limits)
    except RuntimeError:
        return True
    return False

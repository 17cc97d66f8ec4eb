"""Each check of the conformance suite finds the fault that it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import pytest
import torch
from custom_pypto_testing import Case, checks
from faulty_ops import (
    ACCUMULATE,
    PAIR,
    PLUS,
    TWICE,
    accumulate,
    case,
    expect_one_device,
    like,
    registered,
    setup_context,
    touching,
    twice,
    vector,
    warning_fake,
)
from manifests import contract_of
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

X, Y, MATRIX = vector(6), vector(6, seed=1), vector(12).view(3, 4)
LARGER = (vector(9),)


@dataclass(frozen=True)
class Fault:
    """An op with a fault, a call, and how a check reports the fault."""

    check: Callable[..., None]
    message: str
    kernel: Callable[..., Any] = twice
    fake: Callable[..., Any] | None = like
    schema: str = TWICE
    args: tuple[Tensor, ...] = (X,)
    resized: tuple[Tensor, ...] | None = None
    reference: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None
    setup_context: Callable[..., Any] | None = None
    error: type[Exception] = AssertionError
    contract: str = ""


def add_two(x: Tensor, total: Tensor) -> None:
    total.add_(x, alpha=2)


def add_unseen(x: Tensor, total: Tensor) -> None:
    total.numpy()[:] += x.numpy()  # NumPy does not know of version counters


def add_and_write_into_gaps(x: Tensor, total: Tensor) -> None:
    result = total + x
    total.as_strided((total.stride(0) * 6,), (1,), 0).zero_()
    total.copy_(result)


def write_beside(x: Tensor) -> Tensor:
    x.as_strided((1,), (1,), x.storage_offset() + x.numel()).zero_()
    return x * 2


def bump_version(x: Tensor) -> Tensor:
    torch.autograd.graph.increment_version(x)
    return x * 2


def pair_of_one(x: Tensor) -> tuple[Tensor, Tensor]:
    result = x * 2
    return result, result.view(-1)


def ignore_strides(x: Tensor) -> Tensor:
    return x.as_strided(x.shape, torch.empty(x.shape).stride(), 0) * 2


def ignore_order_of_dims(x: Tensor) -> Tensor:
    return x * 2 if x.stride(0) > x.stride(1) else x.as_strided(x.shape, (3, 1)) * 2


def fail_on_strides(x: Tensor) -> Tensor:
    if not x.is_contiguous():
        raise RuntimeError("invalid memory access")
    return x * 2


def copy_rows_of_dense_heads(x: Tensor) -> Tensor:
    if x.stride(0) != x.shape[1] * x.stride(1):
        return x * 2
    return x.as_strided(x.shape, (x.stride(0), x.shape[2], 1)) * 2


def ignore_stride_of_batches(x: Tensor) -> Tensor:
    if x.stride(1) != x.shape[2]:
        return x * 2
    return x.as_strided(x.shape, (x.shape[1] * x.shape[2], x.shape[2], 1)) * 2


def expect_the_order_of_dims(x: Tensor) -> Tensor:
    strides = sorted(x.stride(), reverse=True)
    return x.as_strided(x.shape, strides) * 2


def ignore_offset(x: Tensor) -> Tensor:
    return x.as_strided(x.shape, x.stride(), 0) * 2


def refuse_gaps(x: Tensor) -> Tensor:
    if not x.is_contiguous():
        raise RuntimeError("twice: argument 'x' must be contiguous")
    return x * 2


def fake_with_devices_outside_fake_mode(x: Tensor, y: Tensor) -> Tensor:
    if not isinstance(x, FakeTensor):
        expect_one_device(x, y)
    return like(x)


def backward_by_numpy(ctx: Any, grad: Tensor) -> Tensor:
    return torch.from_numpy(grad.numpy() * 2)


def give_other_results_each_time() -> Callable[[Tensor], Tensor]:
    factor = count(2)
    return lambda x: x * next(factor)


def fix_size(x: Tensor) -> Tensor:
    return x.new_empty(int(x.shape[0]))


def add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


STRIDES = partial(Fault, checks.check_strides)
ROWS = """
[twice]
schema = "twice(Tensor x) -> Tensor"
tensors.x = { shape = "B N D", strides = "last_dim_contiguous" }
outputs.y = { like = "x" }
"""
HEADS = partial(STRIDES, args=(vector(24).view(2, 3, 4),), contract=ROWS)
DEVICES = partial(Fault, checks.check_devices, args=(X, Y))
OPERATOR = partial(Fault, checks.check_operator)
SYMBOLIC = partial(Fault, checks.check_symbolic_fake, resized=LARGER)
COMPILED = partial(Fault, partial(checks.check_compiled, backend="aot_eager"))
ALIAS = partial(Fault, checks.check_aliasing, "output shares memory with argument 'x'")

WRONG_FAKES = {
    "shape": (
        lambda x: x.new_empty(x.shape[0] + 1, x.shape[1]),
        r"\[4, 4\] by the fake, but \[3, 4\]",
    ),
    "dtype": (
        lambda x: torch.empty_like(x, dtype=torch.float32),
        "torch.float32 by the fake, but torch.float64",
    ),
    "strides": (lambda x: x.new_empty(x.shape[::-1]).t(), r"\[1, 3\] by the fake, but \[4, 1\]"),
    "device": (lambda x: torch.empty_like(x, device="meta"), "meta by the fake, but cpu"),
}
FAULTS = {
    f"fake with another {what}, {check.__name__}": Fault(
        check, f"the {what} of output is {message}", fake=fake, args=(MATRIX,)
    )
    for what, (fake, message) in WRONG_FAKES.items()
    for check in (checks.check_fake, checks.check_symbolic_fake)
} | {
    "wrong value": Fault(
        checks.check_values,
        r"output: 1 of 6 elements .* at \[3\], is .* instead of",
        lambda x: x * 2 + (x == x[3]),
        reference=twice,
    ),
    "reference without a result": Fault(
        checks.check_values,
        r"twice: its reference, or definition in ops.toml, returns None, but the schema says Tens",
        reference=lambda x: None,
    ),
    "wrongly mutated argument": Fault(
        checks.check_mutated,
        "argument 'total': 6 of 6 elements are wrong",
        add_two,
        schema=ACCUMULATE,
        args=(X, Y),
        reference=accumulate,
    ),
    "hidden mutation": Fault(
        checks.check_unchanged,
        "'x' was written to, but the schema does not say so",
        lambda x: x.mul_(2).clone(),
    ),
    "write beside an argument": Fault(
        checks.check_unchanged, "argument 'x' was written to", write_beside, args=(X[:5],)
    ),
    "version that is not bumped": Fault(
        checks.check_versions,
        "mutated argument 'total' was not bumped",
        add_unseen,
        schema=ACCUMULATE,
        args=(X, Y),
    ),
    "version bumped without reason": Fault(
        checks.check_versions, "'x' was bumped, but the schema does not mark it", bump_version
    ),
    "output that is an argument": ALIAS(lambda x: x),
    "output that is a part of an argument": ALIAS(lambda x: x[2:]),
    "output that is a view of an argument": ALIAS(lambda x: x.t()),
    "output that is another output": Fault(
        checks.check_aliasing, "output 0 shares memory with output 1", pair_of_one, schema=PAIR
    ),
    "opcheck without a fake": OPERATOR(
        r"(?s)torch.library.opcheck fails.*test_faketensor: ", fake=None
    ),
    "opcheck with gradients": OPERATOR(
        "opcheck fails with arguments that require grad", backward=backward_by_numpy
    ),
    "opcheck with torch's own warning of the op": OPERATOR(
        "not a leaf Tensor is being accessed", fake=warning_fake(touching("acme_op"))
    ),
    "opcheck with another warning of the op": OPERATOR("the op is deprecated", fake=warning_fake()),
    "resized of equal sizes": COMPILED("'resized' of 'sample' has the same sizes", resized=(Y,)),
    "resized of another dtype": COMPILED(
        "with the same ranks and dtypes", resized=(vector(9).float(),)
    ),
    "recompilation": COMPILED(
        "compiled again for the sizes of 'resized'",
        fake=lambda x: x.new_empty(x.shape) if x.shape[0] < 8 else like(x),
        resized=LARGER,
    ),
    "result that depends on threads": Fault(
        checks.check_threads,
        "output: 6 of 6 elements differ with two threads",
        lambda x: x + x * torch.get_num_threads(),
    ),
    "ignored strides of a vector": STRIDES(
        "argument 'x' that has gaps between its elements and an offset of 1: output",
        ignore_strides,
    ),
    "ignored strides of a matrix": STRIDES(
        "argument 'x' that has a gap behind dim 1 and gaps .* and an offset of 1: output",
        ignore_strides,
        args=(X.view(2, 3),),
    ),
    "ignored order of dims": STRIDES(
        r"'x' that has dims in the order \[1, 0\]: output",
        ignore_order_of_dims,
        args=(X.view(2, 3),),
    ),
    "write into gaps": STRIDES(
        r"'total' that has gaps .* wrote between the argument's",
        add_and_write_into_gaps,
        fake=None,
        schema=ACCUMULATE,
        args=(X, Y),
    ),
    "fake that keeps strides which the kernel does not": STRIDES(
        r"'x' that has dims in the order \[1, 0\]: .*\[1, 2\] by the fake",
        fake=torch.empty_like,
        args=(X.view(2, 3),),
    ),
    "gap between heads that the contract allows": HEADS(
        "a gap behind dim 2: output", copy_rows_of_dense_heads
    ),
    "gap between batches that the contract allows": HEADS(
        "a gap behind dim 1: output", ignore_stride_of_batches
    ),
    "order of dims that the contract allows": HEADS(
        r"dims in the order \[1, 0, 2\]: output", expect_the_order_of_dims
    ),
    "offset that every contract allows": HEADS(
        "'x' that has an offset of 1: output",
        ignore_offset,
        contract=ROWS.replace("last_dim_contiguous", "contiguous"),
    ),
    "refusal of strides that the contract allows": HEADS(
        "ops.toml allows such strides, but the op says: twice: argument 'x' must", refuse_gaps
    ),
    "another error on strides": STRIDES(
        "invalid memory access", fail_on_strides, error=RuntimeError
    ),
    "output that nobody wrote": DEVICES(
        r"^plus with argument 'y' on meta: the op raises no error, and output is on cpu,",
        add,
        lambda x, y: like(x),
        PLUS,
    ),
    "mutated argument that nobody wrote": DEVICES(
        r"'x' on meta: the op .* argument 'total' is on cpu,",
        accumulate,
        lambda x, total: None,
        ACCUMULATE,
    ),
    "fake that compares devices outside FakeTensorMode only": DEVICES(
        r"'y' on meta in FakeTensorMode: the op .* on cpu",
        add,
        fake_with_devices_outside_fake_mode,
        PLUS,
    ),
    "output that should be contiguous": Fault(
        checks.check_fake,
        r"\[1, \d\] by the kernel; outputs are contiguous unless .* as by \.contig",
        lambda x: x * 2,
        args=(MATRIX.t(),),
    ),
    "output that should be contiguous, of strided arguments": STRIDES(
        r"\[1, \d\] by the kernel; outputs are contiguous unless .* as by \.contig",
        lambda x: x * 2,
        args=(MATRIX,),
    ),
    "fake with another number of outputs": Fault(
        checks.check_fake,
        r"the fake returns \['output\[0\]'\], the kernel",
        lambda x: [x * 2, x * 3],
        lambda x: [like(x)],
        "several(Tensor x) -> Tensor[]",
    ),
    "fake that fixes a size": SYMBOLIC(
        "fixes dimension 0 of argument 'x' to 6, but 'resized'", fake=fix_size
    ),
    "fake that is right for one size only": SYMBOLIC(
        r"at the sizes of 'resized', the shape .* \[3\] by",
        fake=lambda x: x.new_empty(12 - x.shape[0]),
    ),
    "op that cannot be compiled": COMPILED(
        "does not support running with fake tensors",
        fake=None,
        error=Exception,
    ),
    "result that compilation changes": COMPILED(
        "output: 6 of 6 elements differ when compiled with aot_eager",
        give_other_results_each_time(),
    ),
    "op that cannot be exported dynamically": Fault(
        checks.check_exported,
        r"specialized|ConstraintViolation|marked.*as dynamic",
        fake=fix_size,
        resized=LARGER,
        error=Exception,
    ),
    "wrong gradient": Fault(
        checks.check_gradients,
        r"(?s)the gradients with respect to x are wrong: Jacobian",
        backward=lambda ctx, grad: grad * 3,
    ),
    "wrong second gradient": Fault(
        checks.check_second_gradients,
        "the second-order gradients with respect to x",
        lambda x: x.contiguous() ** 2,
        backward=lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].detach(),
        setup_context=setup_context,
    ),
}


def case_of(fault: Fault, op: Any) -> Case:
    made = case(op, *fault.args, resized=fault.resized, reference=fault.reference)
    return replace(made, contract=contract_of(fault.contract)) if fault.contract else made


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_found(fault: Fault) -> None:
    threads = torch.get_num_threads()
    with (
        registered(
            fault.schema,
            fault.kernel,
            fake=fault.fake,
            backward=fault.backward,
            setup_context=fault.setup_context,
        ) as op,
        pytest.raises(fault.error, match=fault.message),
    ):
        fault.check(case_of(fault, op))
    assert torch.get_num_threads() == threads

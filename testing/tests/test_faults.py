"""Each check of the conformance suite finds the fault that it is for, and passes right ops."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import pytest
import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import checks
from custom_pypto_testing.case import Case
from faulty_ops import (
    ACCUMULATE,
    PAIR,
    PLUS,
    TWICE,
    accumulate,
    case,
    expect_one_device,
    like,
    op_of,
    registered,
    setup_context,
    twice,
    vector,
)
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

X, Y, MATRIX = vector(6), vector(6, seed=1), vector(12).view(3, 4)
LARGER = (vector(9),)


@dataclass(frozen=True)
class Fault:
    """An op, a call, and how a check reports the fault; without a message the op is right."""

    check: Callable[..., None]
    message: str
    kernel: Callable[..., Any] = twice
    fake: Callable[..., Any] | None = like
    schema: str = TWICE
    args: tuple[Any, ...] = (X,)
    resized: tuple[Any, ...] | None = None
    reference: Callable[..., Any] | Reference | None = None
    backward: Callable[..., Any] | None = None
    setup_context: Callable[..., Any] | None = None
    error: type[Exception] = AssertionError
    contract: str = ""
    samples: tuple[SampleInput, ...] | None = None
    """The samples of the op, where a check looks at them; else one of `args` and `resized`."""


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


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    raise AssertionError(f"{sample.name} is judged by its author")


def pair_of_one(x: Tensor) -> tuple[Tensor, Tensor]:
    result = x * 2
    return result, result.view(-1)


def copy_rows_of_dense_heads(x: Tensor) -> Tensor:
    if x.stride(0) != x.shape[1] * x.stride(1):
        return x * 2
    return x.as_strided(x.shape, (x.stride(0), x.shape[2], 1)) * 2


def ignore_stride_of_batches(x: Tensor) -> Tensor:
    if x.stride(1) != x.shape[2]:
        return x * 2
    return x.as_strided(x.shape, (x.shape[1] * x.shape[2], x.shape[2], 1)) * 2


def refuse_gaps(x: Tensor, text: str = "twice: argument 'x' must be contiguous") -> Tensor:
    if not x.is_contiguous():
        raise RuntimeError(text)
    return x * 2


def fake_with_devices_outside_fake_mode(x: Tensor, y: Tensor) -> Tensor:
    if not isinstance(x, FakeTensor):
        expect_one_device(x, y)
    return like(x)


def give_other_results_each_time() -> Callable[[Tensor], Tensor]:
    factor = count(2)
    return lambda x: x * next(factor)


def fix_size(x: Tensor) -> Tensor:
    return x.new_empty(int(x.shape[0]))


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
SQUARE = partial(
    Fault,
    kernel=lambda x: x.contiguous() ** 2,
    backward=lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].detach(),
    setup_context=setup_context,
)
WRITING = partial(Fault, schema=ACCUMULATE, args=(X, Y))
ARGSORT = partial(
    OPERATOR,
    kernel=lambda x: (x.argsort(), x * 2),
    fake=lambda x: (torch.empty_like(x, dtype=torch.int64), torch.empty_like(x)),
    schema=PAIR,
    setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(output[0]),
)


def of_op(check: Callable[..., None]) -> Callable[[Case], None]:
    return lambda case: check(case.op)


def on_this_thread(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() * 2)


def leave_out_a_row_of_the_second_thread(x: Tensor) -> Tensor:
    """The second thread, which has work behind the grain only, begins one row too late."""
    rows, threads = len(x), torch.get_num_threads()
    y = on_this_thread(x)
    if rows > GRAIN and threads > 1:
        y[-(-rows // threads)] = 0
    return y


def leave_out_the_row_behind_the_grain(x: Tensor) -> Tensor:
    y = on_this_thread(x)
    y[GRAIN : GRAIN + 1] = 0
    return y


def fail(note: str) -> None:
    raise AssertionError(note)


EMPTY = partial(Fault, schema="several(Tensor x) -> Tensor[]", backward=lambda ctx, grad: grad)
GRAIN = 1024
LARGE = partial(
    Fault,
    lambda case: checks.check_large_calls(case.op, fail),
    fake=torch.empty_like,
    reference=lambda x: x * 2,
    args=(torch.ones(2, 3),),
    contract="""
[twice]
schema = "twice(Tensor x) -> Tensor"
tensors.x = { shape = "rows N", dtype = "float32" }
outputs.y = { like = "x" }
""",
)
NEEDED = partial(Fault, of_op(checks.check_has_samples))
FLOAT32 = SampleInput((X.float(),), resized=SampleInput((vector(9).float(),)))
ALIAS = partial(Fault, checks.check_aliasing, "output shares memory with argument 'x'")

WRONG_FAKES = {
    "shape": (lambda x: x.new_empty(x.shape[0] + 1, 4), r"\[4, 4\] by the fake, but \[3, 4\]"),
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
    "output that is not written, where new memory has zeros": Fault(
        checks.check_values,
        "output: 1048576 of 1048576 elements are wrong",
        torch.empty_like,
        reference=torch.zeros_like,
        args=(torch.zeros(2**20),),
    ),
    "reference without a result": Fault(
        checks.check_values,
        r"twice: its reference, or definition in ops.toml, returns None, but the schema says Tens",
        reference=lambda x: None,
    ),
    "wrongly mutated argument": WRITING(
        checks.check_mutated,
        "argument 'total': 6 of 6 elements are wrong",
        add_two,
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
    "version that is not bumped": WRITING(
        checks.check_versions, "mutated argument 'total' was not bumped", add_unseen
    ),
    "version bumped without reason": Fault(
        checks.check_versions, "'x' was bumped, but the schema does not mark it", bump_version
    ),
    "output that is an argument": ALIAS(lambda x: x),
    "output that is another output": Fault(
        checks.check_aliasing, "output 0 shares memory with output 1", pair_of_one, schema=PAIR
    ),
    "opcheck without a fake": OPERATOR(
        r"(?s)torch.library.opcheck fails.*test_faketensor: ", fake=None
    ),
    "opcheck with gradients": OPERATOR(
        "opcheck fails with arguments that require grad",
        backward=lambda ctx, grad: torch.from_numpy(grad.numpy() * 2),
    ),
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
    "ignored strides of a matrix": STRIDES(
        "argument 'x' that has a gap behind dim 1 and gaps .* and an offset of 1: output",
        lambda x: x.as_strided(x.shape, torch.empty(x.shape).stride(), 0) * 2,
        args=(X.view(2, 3),),
    ),
    "write into gaps": WRITING(
        checks.check_strides,
        r"'total' that has gaps .* wrote between the argument's",
        add_and_write_into_gaps,
        fake=None,
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
        r"dims in the order \[1, 0, 2\]: output",
        lambda x: x.as_strided(x.shape, sorted(x.stride(), reverse=True)) * 2,
    ),
    "offset that every contract allows": HEADS(
        "'x' that has an offset of 1: output",
        lambda x: x.as_strided(x.shape, x.stride(), 0) * 2,
        contract=ROWS.replace("last_dim_contiguous", "contiguous"),
    ),
    "refusal of strides that the contract allows": HEADS(
        "ops.toml allows such strides, but the op says: twice: argument 'x' must", refuse_gaps
    ),
    "another error on strides": STRIDES(
        "invalid memory", partial(refuse_gaps, text="invalid memory"), error=RuntimeError
    ),
    "output that nobody wrote": DEVICES(
        r"^plus with argument 'y' on meta: the op raises no error, and output is on cpu,",
        torch.add,
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
        torch.add,
        fake_with_devices_outside_fake_mode,
        PLUS,
    ),
    **{
        f"output that should be contiguous, {check.__name__}": Fault(
            check,
            r"\[1, \d\] by the kernel; outputs are contiguous unless .* as by \.contig",
            lambda x: x * 2,
            args=(x,),
        )
        for check, x in ((checks.check_fake, MATRIX.t()), (checks.check_strides, MATRIX))
    },
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
        "does not support running with fake tensors", fake=None, error=Exception
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
        "the gradients with respect to x are wrong: Jac",
        backward=lambda ctx, g: g * 3,
    ),
    "wrong second gradient": SQUARE(
        checks.check_second_gradients, "the second-order gradients with respect to x"
    ),
    # torch writes such slices elsewhere; core keeps ops of its own namespace from that.
    "written slice of a tensor that begins inside its memory": WRITING(
        checks.check_written_slices,
        "argument 'total': .* elements differ as .* compiled with",
        accumulate,
        expect_one_device,
        resized=(vector(9), vector(9, seed=1)),
    ),
    "right first gradient where the second is wrong": SQUARE(checks.check_gradients, ""),
    "argument without a gradient": Fault(
        checks.check_gradients,
        "backward has no gradient for y; the results depend",
        *(torch.add, None, PLUS, (X, Y)),
        backward=lambda ctx, g: (g, None),
    ),
    "no result with a gradient": EMPTY(checks.check_gradients, "", lambda x: []),
    "no second gradient": EMPTY(checks.check_second_gradients, "", lambda x: []),
    "comparison of the author": Fault(
        checks.check_values, "sample is judged by its author", reference=Reference(twice, compare)
    ),
    "comparison of mutated arguments of the author": WRITING(
        checks.check_mutated,
        "sample is judged by its author",
        accumulate,
        reference=Reference(accumulate, compare_mutated=compare),
    ),
    "gradient of a second result that cannot be traced": ARGSORT(
        r"(?s)that require grad.*aot_dispatch_dynamic",
        backward=lambda ctx, _, grad: torch.from_numpy(grad.numpy() * 2),
    ),
    "right gradient of a second result": ARGSORT("", backward=lambda ctx, _, grad: grad * 2),
    "refusal of strides of which no contract speaks": STRIDES("", refuse_gaps),
    "result on meta": DEVICES("", torch.add, lambda x, y: like(x).to("meta"), PLUS),
    "right results of several threads": LARGE("", lambda x: x * 2),
    "right results of several threads for a sample": LARGE(
        "",
        lambda x: x * 2 if x.numel() > 2**20 else on_this_thread(x),
        args=(torch.ones(2, 2**20),),
    ),
    "no call that is split among threads": LARGE(
        "threads: no call was split among threads, neither a sample nor one of 2", on_this_thread
    ),
    "fault of the second thread": LARGE(
        r"x=float32\[\d+, \d+\]: .* differ with two threads from one",
        leave_out_a_row_of_the_second_thread,
    ),
    "fault behind a grain": LARGE(
        r"called with x=float32\[\d+, \d+\]: output: .* are wrong",
        leave_out_the_row_behind_the_grain,
    ),
    "no reference": Fault(
        of_op(checks.check_has_reference), r"twice has no reference: .* custom_pypto_references\(\)"
    ),
    "reference": Fault(of_op(checks.check_has_reference), "", reference=twice),
    "no samples": NEEDED(r"twice has no samples: .* custom_pypto_samples\(\)", samples=()),
    "no second size": NEEDED(r"no sample at two sizes: .*resized=SampleInput\("),
    "no tensors": NEEDED(
        "", lambda x: x, lambda x: x, "answer(int x) -> int", samples=(SampleInput((6,)),)
    ),
    "no float64 sample of a differentiable op": NEEDED(
        "differentiable but has no float64 sample: let its pos",
        backward=lambda ctx, grad: grad * 2,
        samples=(FLOAT32,),
    ),
    "two samples of one name": NEEDED(
        "twice: two samples are named 'small'; rename one",
        samples=(SampleInput((X,), name="small"),) * 2,
    ),
}


def expect(fault: Fault) -> None:
    """Run the check, which changes neither its arguments nor the number of threads."""
    threads, before = torch.get_num_threads(), [each.clone() for each in fault.args]
    sample = SampleInput(fault.args, {}, "sample", fault.resized and SampleInput(fault.resized))
    samples = (sample,) if fault.samples is None else fault.samples
    with registered(
        fault.schema,
        fault.kernel,
        fake=fault.fake,
        backward=fault.backward,
        setup_context=fault.setup_context,
    ) as overload:
        op = op_of(overload, *samples, reference=fault.reference, contract=fault.contract)
        with pytest.raises(fault.error, match=fault.message) if fault.message else nullcontext():
            fault.check(Case(op, sample))
    assert torch.get_num_threads() == threads
    assert all(map(torch.equal, fault.args, before))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_each_fault_gives_its_message(fault: Fault) -> None:
    expect(fault)


def test_a_case_has_the_names_of_its_overload_and_its_sample_or_a_number() -> None:
    samples = SampleInput((X,)), SampleInput((X,), name="s"), SampleInput((X,))
    with registered("twice.all(Tensor x) -> Tensor", twice) as op:
        names = [each.id for each in op_of(op, *samples).cases]
    assert names == ["twice.all-0", "twice.all-s", "twice.all-2"]


def test_floats_make_another_graph_at_special_values_only() -> None:
    with registered("scaled(Tensor x, float by) -> Tensor", lambda x, by: x * by) as op:
        numbers = (2.0, 3.5, -1.0, -7.0, 0.0, 1.0, float("inf"))
        keys = [case(op, X, number).graph_key for number in numbers]
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert len(set(keys)) == 5


def test_a_slow_reference_gets_no_further_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)

    def reference(x: Tensor) -> Tensor:
        if len(x) > 2:
            monkeypatch.setattr(time, "thread_time", lambda: 1.0)
        return x * 2

    text = "where N is large, the results are not compared with the reference, which took"
    expect(LARGE(text, lambda x: x * 2, reference=reference))

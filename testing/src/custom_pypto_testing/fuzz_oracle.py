"""What must hold for any call, however wrong: the judgement of the fuzzer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from custom_pypto_contract.contract import OpContract
from torch._subclasses.fake_tensor import FakeTensorMode

from .case import Case
from .fuzz_inputs import HostileCall
from .meta_tensors import Properties, Twins, properties_of
from .outputs import tensor_outputs

_REFUSALS = (RuntimeError, TypeError, NotImplementedError)
_MOST_ELEMENTS = 2**22
"""Kernels are not run on more elements of one argument, which may take hours."""
_MORE_THAN_MEMORY = 2**44
TOO_LARGE = "too large"
_CANNOT_ALLOCATE = (
    "can't allocate memory",
    "calculation overflowed",
    "do not fit 64 bits",
    "there is not enough memory",
    "must have at most 64 dimensions",
)


@dataclass(frozen=True)
class Outcome:
    """What one kernel did with a call: the outputs' properties, or the error."""

    outputs: Sequence[Properties] | None
    error: Exception | None

    @property
    def text(self) -> str:
        """The first line of the error."""
        return str(self.error).partition("\n")[0]

    def __str__(self) -> str:
        return f"accepts it: {self.outputs}" if self.error is None else f"says {self.text!r}"


@dataclass(frozen=True)
class Judgement:
    """Whether the kernel accepted the call, the known reason that explains it, and the fault."""

    accepted: bool
    reason: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Disagreement:
    """A call of which kernel and fake say different things, or an error without the op's name."""

    op: OpContract
    hostile: HostileCall
    kernel: Outcome
    fake: Outcome

    @property
    def only_kernel_refuses(self) -> bool:
        """Whether the fake takes the call."""
        return self.kernel.error is not None and self.fake.error is None

    def kernel_names(self, arguments: Sequence[str]) -> bool:
        """Return whether the kernel's error names the op and one of these arguments."""
        named = re.match(rf"{re.escape(self.op.name)}: argument '(\w+)", self.kernel.text)
        return named is not None and named[1] in arguments

    def every_refusal_says(self, *parts: str) -> bool:
        """Return whether there is an error, and each names the op and has one of these texts."""
        texts = [each.text for each in (self.kernel, self.fake) if each.error is not None]
        return texts != [] and all(
            text.startswith(f"{self.op.name}: ") and any(part in text for part in parts)
            for text in texts
        )

    def kernel_says(self, *parts: str) -> bool:
        """Return whether the kernel's error has one of these texts."""
        return any(part in self.kernel.text for part in parts)


@dataclass(frozen=True)
class Reason:
    """Why a disagreement is right, in short and in full."""

    name: str
    why: str
    explains: Callable[[Disagreement], bool]


REASONS = (
    Reason(
        "values",
        "a fake has no values: only the kernel reads lengths, block tables and indices",
        lambda each: each.only_kernel_refuses and each.kernel_names(_tensors_of_indices(each.op)),
    ),
    Reason(
        "memory",
        "a fake allocates nothing, and torch has other limits for tensors on meta",
        lambda each: each.every_refusal_says(*_CANNOT_ALLOCATE),
    ),
    Reason(
        "torch's copy",
        "torch copies a negative or conjugate view before it calls a kernel, and may fail",
        lambda each: (
            (each.hostile.has("negative") or each.hostile.has("conjugate"))
            and each.kernel_says(*_CANNOT_ALLOCATE, '_cpu" not implemented for ')
        ),
    ),
    Reason(
        "autograd",
        "a fake writes nothing, so autograd forbids a write to the kernel alone",
        lambda each: each.kernel_says(
            " is written in place, which torch refuses: ",
            " is written in place, but it requires grad ",
        ),
    ),
    Reason(
        "gradient",
        "torch keeps no inference tensor for a gradient, and refuses it before the kernel runs",
        lambda each: each.kernel_says("Inference tensors cannot be saved for backward"),
    ),
)


def judge(hostile: HostileCall, *, in_fake_mode: bool) -> Judgement:
    """Run the fake and the kernel on a call, and compare.

    The fake runs on tensors on meta, which is fast, or in FakeTensorMode, as under torch.compile.
    """
    call, op = hostile.call, hostile.call.op.contract
    assert op is not None
    has_fake = op.outputs is not None
    # A text that names meta would name other devices for tensors on meta.
    in_fake_mode = in_fake_mode or any(each.is_meta for each in call.tensors.values())
    fake = _run_fake(call, in_fake_mode=in_fake_mode) if has_fake else Outcome(None, None)
    if _is_copied_for_long(call) or (fake.error is None and _is_too_large(call, fake)):
        return Judgement(accepted=True, reason=TOO_LARGE)
    mutable = {name: _bytes(each) for name, each in call.mutable.items() if not each.is_meta}
    before = {name: each.clone() for name, each in mutable.items()}
    kernel = _outcome(call.run)
    accepted = kernel.error is None
    if kernel.error is not None:
        written = [name for name, each in mutable.items() if not each.equal(before[name])]
        if written:
            fault = f"argument '{written[0]}' is written before the kernel refuses: it {kernel}"
            return Judgement(accepted, fault=fault)
    where = "fake" if in_fake_mode else "fake on meta"
    found = ""
    for who, each in (("kernel", kernel), (where, fake)):
        if each.error is not None and not _is_refusal(call, each.error):
            found = f"no error of the op: the {who} raises {type(each.error).__name__}: {each.text}"
            break
    if not found and has_fake and not _is_same(kernel, fake):
        found = f"the kernel {kernel}; the {where} {fake}"
    if not found:
        return Judgement(accepted)
    disagreement = Disagreement(op, hostile, kernel, fake)
    for reason in REASONS:
        if reason.explains(disagreement):
            return Judgement(accepted, reason.name)
    return Judgement(accepted, fault=found)


def _tensors_of_indices(op: OpContract) -> list[str]:
    """The tensors whose values the kernel reads before it computes."""
    return [each.name for each in op.tensors if {"int32", "int64"} >= {*each.dtype.allowed} > set()]


def _is_refusal(call: Case, error: Exception) -> bool:
    """Whether it is an error of the op, or torch's own about the call's types."""
    own = f"{call.name}: ", f"{call.op.schema.name}() "
    return type(error) in _REFUSALS and str(error).startswith(own)


def _is_same(kernel: Outcome, fake: Outcome) -> bool:
    if kernel.error is None and fake.error is None:
        return kernel.outputs == fake.outputs
    return kernel.error is not None and fake.error is not None and kernel.text == fake.text


def _is_too_large(call: Case, fake: Outcome) -> bool:
    """Whether the kernel would compute for hours, rather than fail to allocate its outputs."""
    outputs = [math.prod(shape) for shape, _, _ in fake.outputs or ()]
    if any(each > _MORE_THAN_MEMORY for each in outputs):
        return False
    elements = [*outputs, *(each.numel() for each in call.tensors.values())]
    return any(each > _MOST_ELEMENTS for each in elements)


def _is_copied_for_long(call: Case) -> bool:
    """Whether torch would copy gigabytes before it calls the kernel."""
    lazy = (each for each in call.tensors.values() if each.is_neg() or each.is_conj())
    return any(each.numel() > _MOST_ELEMENTS for each in lazy)


def _outcome(run: Callable[[], Any]) -> Outcome:
    try:
        returned = run()
    except Exception as error:
        return Outcome(None, error)
    return Outcome([properties_of(each) for each in tensor_outputs(returned).values()], None)


def _run_fake(call: Case, *, in_fake_mode: bool) -> Outcome:
    try:
        if not in_fake_mode:
            return _outcome(call.map(Twins()).run)
        mode = FakeTensorMode()
        fakes = call.map(lambda name, tensor: mode.from_tensor(tensor))
    except Exception as error:
        return Outcome(None, error)
    with mode:
        return _outcome(fakes.run)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(tensor.untyped_storage())

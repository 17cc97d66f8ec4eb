"""What must hold for any call, however wrong: the judgement of the fuzzer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .case import Case
from .fuzz_inputs import FuzzCall
from .meta_tensors import Properties, Twins, properties_of
from .outputs import storage_bytes, tensor_outputs

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
_OVERFLOWS = ("integer multiplication overflow", "does not fit into 64 bits")


@dataclass(frozen=True)
class Outcome:
    """What one kernel did with a call: the outputs' properties, or the error."""

    outputs: Sequence[Properties] | None
    error: Exception | None

    @property
    def text(self) -> str:
        """The first line of the error."""
        return str(self.error).partition("\n")[0]

    def says(self, *parts: str) -> bool:
        """Return whether the error has one of these texts."""
        return any(part in self.text for part in parts)

    def __str__(self) -> str:
        return f"accepts it: {self.outputs}" if self.error is None else f"says {self.text!r}"


@dataclass(frozen=True)
class Judgement:
    """Whether the kernel accepted the call, the known reason that explains it, and the fault."""

    accepted: bool
    reason: str = ""
    fault: str = ""


def _is_of_values(fuzzed: FuzzCall, kernel: Outcome, fake: Outcome) -> bool:
    op = fuzzed.call.op.contract
    assert op is not None
    named = re.match(rf"{re.escape(op.name)}: argument '(\w+)", kernel.text)
    if kernel.error is None or fake.error is not None or named is None:
        return False
    dtypes = (each.dtype.allowed for each in op.tensors if each.name == named[1])
    return {"int32", "int64"} >= {*next(dtypes, ())} > set()


def _is_of_memory(fuzzed: FuzzCall, kernel: Outcome, fake: Outcome) -> bool:
    refusals = [each for each in (kernel, fake) if each.error is not None]
    texts = _CANNOT_ALLOCATE if len(refusals) == 1 else (*_CANNOT_ALLOCATE, *_OVERFLOWS)
    return refusals != [] and all(
        each.text.startswith(f"{fuzzed.call.name}: ") and each.says(*texts) for each in refusals
    )


Explains = Callable[[FuzzCall, Outcome, Outcome], bool]

REASONS: Mapping[str, Explains] = {
    "values": _is_of_values,
    "memory": _is_of_memory,
    "torch's copy": lambda fuzzed, kernel, fake: (
        (fuzzed.has("negative") or fuzzed.has("conjugate"))
        and kernel.says(*_CANNOT_ALLOCATE, '_cpu" not implemented for ')
    ),
    "autograd": lambda fuzzed, kernel, fake: kernel.says(
        " is written in place, which torch refuses: ", " is written in place, but it requires grad "
    ),
    "gradient": lambda fuzzed, kernel, fake: kernel.says(
        "Inference tensors cannot be saved for backward"
    ),
}
"""Why kernel and fake may say different things, or an error lack the op's name: docs/testing.md
explains each."""


def judge(fuzzed: FuzzCall, *, in_fake_mode: bool) -> Judgement:
    """Run the fake and the kernel on a call, and compare.

    The fake runs on tensors on meta, which is fast, or in FakeTensorMode, as under torch.compile.
    """
    call, op = fuzzed.call, fuzzed.call.op.contract
    assert op is not None
    has_fake = op.outputs is not None
    # A text that names meta would name other devices for tensors on meta.
    in_fake_mode = in_fake_mode or any(each.is_meta for each in call.tensors.values())
    run_fake = call.run_fake if in_fake_mode else lambda: call.map(Twins()).run()
    fake = _outcome(run_fake) if has_fake else Outcome(None, None)
    if _is_copied_for_long(call) or (fake.error is None and _is_too_large(call, fake)):
        return Judgement(accepted=True, reason=TOO_LARGE)
    mutable = {name: storage_bytes(each) for name, each in call.mutable.items() if not each.is_meta}
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
    if not found and has_fake and (kernel.outputs, kernel.text) != (fake.outputs, fake.text):
        found = f"the kernel {kernel}; the {where} {fake}"
    if not found:
        return Judgement(accepted)
    for reason, explains in REASONS.items():
        if explains(fuzzed, kernel, fake):
            return Judgement(accepted, reason)
    return Judgement(accepted, fault=found)


def _is_refusal(call: Case, error: Exception) -> bool:
    """Whether it is an error of the op, or torch's own about the call's types."""
    own = f"{call.name}: ", f"{call.op.schema.name}() "
    return type(error) in _REFUSALS and str(error).startswith(own)


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

"""Arguments whose memory no kernel can use, or must not write to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch

from custom_pypto_testing.case import Case, refusal_of
from custom_pypto_testing.comparison import bits

if TYPE_CHECKING:
    from custom_pypto_testing.ops_under_test import Op

Fault = tuple[str, str, str, Callable[[Case], Case]]
"""What is wrong, the argument, the words of the error, and how a call gets it."""


def check_memory(op: Op) -> None:
    """Kernel and fake refuse, in the same words, tensors that share memory or have none.

    An argument without its storage; and, where it is written, one with the negative bit, one whose
    elements share memory, and one that overlaps another in part. The error names op and argument;
    no written argument has changed, nor has its version counter. Ops without a contract are not
    called, because torch's own ops end the process for some of these; neither are ops that are
    composed of others, which are left to check.
    """
    if op.contract is None or not op.cases or op.is_composed:
        return
    case = op.cases[0]
    for fault, argument, words, change in _faults(case.copy()):
        call = change(case.copy())
        what = f"{op.name}, with {fault}"
        before = {name: (each.clone(), each._version) for name, each in _readable(call)}
        start = f"{op.name}: argument '{argument}' {words}"
        # The fake first: a kernel without these checks may end the process.
        of_fake = refusal_of(call.run_fake)
        _expect(of_fake, start, f"{what}: the fake")
        of_kernel = refusal_of(call.run)
        _expect(of_kernel, start, f"{what}: the kernel")
        if of_kernel != of_fake:
            raise AssertionError(f"{what}: the kernel says {of_kernel!r}, the fake {of_fake!r}")
        for changed, each in _readable(call):
            value, version = before[changed]
            # Bytes, since NaN is not equal to itself.
            if each._version != version or not bits(each).equal(bits(value)):
                raise AssertionError(f"{what}: the refused call has written to '{changed}'")


def _faults(call: Case) -> Iterator[Fault]:
    tensors = {name: each for name, each in call.tensors.items() if each.numel() > 0}
    for name, tensor in tensors.items():
        # The storages of other devices may have a fixed size.
        if tensor.is_cpu:
            without = partial(_empty, name=name)
            yield f"'{name}' without its storage", name, "needs a storage of ", without
    writes = "is written in place, but"
    names = list(tensors)
    for name in (name for name in names if name in call.mutable):
        tensor = tensors[name]
        if tensor.dtype is not torch.bool:
            words = f"{writes} is a view with the negative bit"
            yield f"the negative bit on '{name}'", name, words, partial(_negate, name=name)
        if max(tensor.shape, default=1) > 1:
            yield f"'{name}' expanded", name, f"{writes} all ", partial(_expand, name=name)
        for other, beside in tensors.items():
            step = max(tensor.element_size(), beside.element_size())
            is_first = other not in call.mutable or names.index(name) > names.index(other)
            if is_first and other != name and tensor.nbytes > step:
                words = f"{writes} overlaps argument '{other}'"
                over = partial(_overlap, name=name, other=other, step=step)
                yield f"'{name}' over a part of '{other}'", name, words, over


def _empty(call: Case, name: str) -> Case:
    tensor = call.tensors[name].clone()
    tensor.untyped_storage().resize_(0)
    return call.replace({name: tensor})


def _negate(call: Case, name: str) -> Case:
    return call.replace({name: torch._neg_view(call.tensors[name])})


def _expand(call: Case, name: str) -> Case:
    tensor = call.tensors[name]
    return call.replace({name: tensor.flatten()[:1].clone().expand(tensor.shape)})


def _overlap(call: Case, name: str, other: str, step: int) -> Case:
    """Move `other` to `step` bytes behind the beginning of `name`."""
    pair = call.tensors[name], call.tensors[other]
    end = pair[0].nbytes + pair[1].nbytes + step
    memory = torch.zeros(end + -end % 16, dtype=torch.uint8, device=pair[0].device)
    moved = [
        memory.view(each.dtype).as_strided(
            each.shape, torch.empty(each.shape, device="meta").stride(), start // each.itemsize
        )
        for each, start in zip(pair, (0, step), strict=True)
    ]
    return call.replace({name: moved[0], other: moved[1]})


def _expect(text: str, start: str, who: str) -> None:
    if not text.startswith(start):
        said = f"says {text!r}" if text else "takes the call"
        raise AssertionError(f"{who} must say {start!r}, but {said}")


def _readable(call: Case) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in call.mutable.items():
        if tensor.untyped_storage().nbytes() > 0:
            yield name, tensor

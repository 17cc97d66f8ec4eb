"""Ops made in the test process, right or with one fault, for the tests of the conformance suite."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing.case import Case
from custom_pypto_testing.ops_under_test import Op
from manifests import contract_of
from torch import Tensor

NAMESPACE = "custom_pypto_testing_ops"

TWICE = "twice(Tensor x) -> Tensor"
PLUS = "plus(Tensor x, Tensor y) -> Tensor"
ACCUMULATE = "accumulate(Tensor x, Tensor(a!) total) -> ()"
PAIR = "pair(Tensor x) -> (Tensor, Tensor)"
TENSORS_OF_PLUS = """
tensors.x = { shape = "M N", dtype = "float32 float64" }
tensors.y = { shape = "N", dtype = "=x" }
rules = [{ argument = "k", check = "k >= 1" }]
"""


@contextmanager
def registered(
    schema: str,
    kernel: Callable[..., Any],
    *,
    fake: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., Any] | None = None,
    tags: tuple[torch.Tag, ...] = (),
) -> Iterator[Any]:
    """The op that `schema` declares, for as long as the context lasts."""
    name = schema.split("(")[0]
    qualified = f"{NAMESPACE}::{name}"
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    try:
        library.define(schema, tags=tags)
        library.impl(name, kernel, "CPU")
        if fake is not None:
            torch.library.register_fake(qualified, fake, lib=library)
        if backward is not None:
            torch.library.register_autograd(
                qualified, backward, setup_context=setup_context, lib=library
            )
        packet, _, overload = name.partition(".")
        yield getattr(getattr(getattr(torch.ops, NAMESPACE), packet), overload or "default")
    finally:
        library._destroy()


def vector(size: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random numbers; the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)


def op_of(
    overload: Any,
    *samples: tuple[Any, ...] | SampleInput,
    reference: Callable[..., Any] | Reference | None = None,
    contract: str = "",
) -> Op:
    """An op with these samples, or samples with these arguments, which are called s0, s1, ..."""
    made = tuple(
        each if isinstance(each, SampleInput) else SampleInput(each, name=f"s{number}")
        for number, each in enumerate(samples)
    )
    if reference is not None and not isinstance(reference, Reference):
        reference = Reference(reference)
    return Op(overload, made, reference, contract_of(contract) if contract else None)


def case(overload: Any, *args: Any, resized: tuple[Any, ...] | None = None, **others: Any) -> Case:
    """A case of an op with the arguments `args`, at another size `resized`."""
    other = None if resized is None else SampleInput(resized)
    return op_of(overload, SampleInput(args, {}, "sample", other), **others).cases[0]


def twice(x: Tensor) -> Tensor:
    """2 x, contiguous."""
    return x.contiguous() * 2


def like(x: Tensor) -> Tensor:
    """The fake of `twice`."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def accumulate(x: Tensor, total: Tensor) -> None:
    """Adds x to total."""
    total.add_(x)


def expect_one_device(*tensors: Tensor) -> None:
    """The first lines of every fake, and the whole fake of `accumulate`."""
    devices = {str(tensor.device) for tensor in tensors}
    if len(devices) > 1:
        raise RuntimeError(f"the arguments are on several devices: {sorted(devices)}")


def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    """Keeps the arguments for the backward."""
    ctx.save_for_backward(*inputs)

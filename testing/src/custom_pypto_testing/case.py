"""One op with one of its samples: the argument of most checks of the suite."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from custom_pypto.core.op_arguments import describe_wrong, tensor_returns

from .call import Call

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract
    from custom_pypto_plugin import Reference, SampleInput
    from torch._ops import OpOverload

_AUTOGRAD_KEYS = ("Autograd", "AutogradCPU", "AutogradPrivateUse1")


@dataclass(frozen=True)
class Expected:
    """The reference's results for a sample, on the CPU."""

    returned: Any
    mutated: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Case:
    """An op, a sample of its arguments, and the op's reference."""

    op: OpOverload[..., Any]
    sample: SampleInput
    reference: Reference | None = None
    contract: OpContract | None = None

    @property
    def id(self) -> str:
        """The case's name in test reports."""
        return f"{self.name}-{self.sample.name}"

    @property
    def name(self) -> str:
        """The op without its namespace, with its overload if that has a name."""
        return Call(self.op, (), {}).name

    def call(self) -> Call:
        """The op with copies of the sample's arguments: every use gets its own."""
        return Call(self.op, self.sample.args, self.sample.kwargs).copy()

    def resized_call(self) -> Call:
        """The op with copies of the arguments of the sample's `resized`."""
        return self.resized.call()

    @property
    def resized(self) -> Case:
        """The case of the sample's `resized`.

        Raises:
            AssertionError: it has none.
        """
        if self.sample.resized is None:
            raise AssertionError(f"{self.name}: sample {self.sample.name!r} has no 'resized'")
        sample = replace(self.sample.resized, name=f"{self.sample.name}, resized")
        return replace(self, sample=sample)

    @cached_property
    def dynamic_dims(self) -> dict[str, list[int]]:
        """Per tensor argument, the dimensions in which the sample and its `resized` differ."""
        resized = self.resized_call().tensors
        tensors = self.call().tensors
        if {n: (t.dim(), t.dtype) for n, t in tensors.items()} != {
            n: (t.dim(), t.dtype) for n, t in resized.items()
        }:
            raise AssertionError(
                f"{self.name}: 'resized' of sample {self.sample.name!r} must have the same tensor"
                " arguments, with the same ranks and dtypes; only sizes and values may differ"
            )
        return {
            name: [d for d in range(t.dim()) if t.size(d) != resized[name].size(d)]
            for name, t in tensors.items()
        }

    @cached_property
    def expected(self) -> Expected:
        """Return the reference's results for this sample, and the arguments that it mutates.

        Raises:
            AssertionError: the op has no reference, or it returns None for a tensor.
        """
        if self.reference is None:
            raise AssertionError(
                f"{self.name} has no reference; add one to custom_pypto_references() of its plugin"
            )
        call = self.call().on_cpu()
        call.seed()
        returned = self.reference.function(*call.args, **call.kwargs)
        self.expect_tensors(returned, "reference, or definition in ops.toml,")
        return Expected(returned, call.mutable)

    def expect_tensors(self, returned: object, what: str) -> None:
        """Raise AssertionError if the results of `what` are not those of the schema."""
        fault = describe_wrong(returned, are) if (are := tensor_returns(self.op._schema)) else ""
        if fault:
            raise AssertionError(f"{self.name}: its {what} {fault}")

    @property
    def graph_key(self) -> str:
        """Equal for cases of which torch.compile makes equal graphs, but for dtypes and floats.

        It makes other graphs for None instead of a tensor, other numbers of dimensions, sizes that
        are 0 or 1, and other scalars. Of floats it copies the value, so only 0, 1, the sign and
        values that are not finite count here.
        """

        def stand_in(name: str, tensor: torch.Tensor) -> torch.Tensor:
            del name
            dtype = torch.float32 if tensor.is_floating_point() else torch.int64
            return torch.empty([min(each, 2) for each in tensor.shape], dtype=dtype, device="meta")

        call = self.call().map(stand_in)
        kwargs = {name: _stand_in_of_float(value) for name, value in call.kwargs.items()}
        return f"{self.name} {[*map(_stand_in_of_float, call.args)]} {kwargs}"

    @property
    def has_own_comparison(self) -> bool:
        """Whether the op is random, and a comparison of its author judges what it draws."""
        judges = self.reference and (self.reference.compare or self.reference.compare_mutated)
        return Call(self.op, (), {}).is_random and bool(judges)

    @property
    def is_on_cpu(self) -> bool:
        """Whether every tensor is on the CPU."""
        return all(tensor.is_cpu for tensor in self.call().tensors.values())

    @property
    def is_differentiable(self) -> bool:
        """Whether the op has an autograd formula."""
        return is_differentiable(self.op)

    @property
    def is_float64(self) -> bool:
        """Whether there are tensors that get a gradient and all are float64, for gradcheck."""
        return {t.dtype for t in self.call().differentiable.values()} == {torch.float64}


def _stand_in_of_float(value: object) -> object:
    if not isinstance(value, float) or value in (0, 1) or not math.isfinite(value):
        return value
    return math.copysign(0.5, value)


def is_differentiable(op: OpOverload[..., Any]) -> bool:
    """Whether `op` has an autograd formula."""
    name = op.name()  # type: ignore[no-untyped-call]
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, k) for k in _AUTOGRAD_KEYS)


def one_of_each_graph(cases: Iterable[Case]) -> list[Case]:
    """Return one case for each graph, with `resized` where a sample has it."""
    chosen: dict[str, Case] = {}
    for case in sorted(cases, key=lambda each: each.sample.resized is None):
        chosen.setdefault(case.graph_key, case)
    return list(chosen.values())

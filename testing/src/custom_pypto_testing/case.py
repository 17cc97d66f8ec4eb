"""A call of an op: the argument of most checks of the suite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from custom_pypto.core.call_text import describe_argument
from custom_pypto.core.op_arguments import describe_wrong, tensor_returns
from custom_pypto_plugin import SampleInput
from torch._subclasses.fake_tensor import FakeTensorMode

from .outputs import Run, leaves

if TYPE_CHECKING:
    from .ops_under_test import Op

Change = Callable[[str, torch.Tensor], torch.Tensor]
"""Returns what replaces a tensor, which has this name."""


@dataclass(frozen=True, eq=False)
class Case:
    """An op on a device with a sample of its arguments.

    To run it, take a `copy`: an op may write to its arguments, and the sample stays as it is.
    """

    op: Op
    sample: SampleInput

    @classmethod
    def of(cls, op: Op, given: Mapping[str, Any]) -> Case:
        """A call with these arguments, by name."""
        return cls(op, SampleInput((), given))

    @property
    def id(self) -> str:
        """The case's name in test reports."""
        return f"{self.name}-{self.sample.name}"

    @property
    def name(self) -> str:
        """The name of the op."""
        return self.op.name

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments given by position."""
        return self.sample.args

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The arguments given by name."""
        return self.sample.kwargs

    def run(self) -> Any:
        """Call the op and return what it returns; a random op draws the same numbers each time."""
        self.seed()
        return self.op.overload(*self.args, **self.kwargs)

    def run_fake(self) -> Any:
        """Call the op in FakeTensorMode, with fakes of the arguments."""
        mode = FakeTensorMode()
        call = self.map(lambda name, tensor: mode.from_tensor(tensor))
        with mode:
            return call.run()

    def seed(self) -> None:
        """Seed torch's generators if the op draws from them."""
        if self.op.is_random:
            torch.manual_seed(0)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments given, by name."""
        names = (argument.name for argument in self.op.schema.arguments)
        return {**dict(zip(names, self.args, strict=False)), **self.kwargs}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors given, by argument name; in a list they are ``name[0]``, ``name[1]``, ..."""
        return {
            leaf: each
            for name, value in self.arguments.items()
            for leaf, each in leaves(name, value)
            if isinstance(each, torch.Tensor)
        }

    @property
    def mutable(self) -> dict[str, torch.Tensor]:
        """The tensors of the arguments that the schema marks as written to, such as ``(a!)``."""
        written = {
            argument.name
            for argument in self.op.schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        }
        return {name: t for name, t in self.tensors.items() if name.partition("[")[0] in written}

    @property
    def immutable(self) -> dict[str, torch.Tensor]:
        """The tensors of the arguments that the schema does not mark as written to."""
        mutable = self.mutable
        return {name: t for name, t in self.tensors.items() if name not in mutable}

    @property
    def differentiable(self) -> dict[str, torch.Tensor]:
        """The tensors that may get a gradient: floating-point, positional and not written to."""
        by_name = {each.name for each in self.op.schema.arguments if each.kwarg_only}
        return {
            name: tensor
            for name, tensor in self.immutable.items()
            if tensor.is_floating_point() and name.partition("[")[0] not in by_name
        }

    def map(self, change: Change) -> Case:
        """The same call with each tensor replaced by ``change(name, tensor)``."""
        changed = {name: _map(name, value, change) for name, value in self.arguments.items()}
        kwargs = {name: changed.pop(name) for name in self.kwargs}
        return replace(self, sample=replace(self.sample, args=(*changed.values(),), kwargs=kwargs))

    def replace(self, tensors: Mapping[str, torch.Tensor]) -> Case:
        """The same call with the tensors named in `tensors` replaced."""
        return self.map(lambda name, tensor: tensors.get(name, tensor))

    def copy(self) -> Case:
        """The same call on copies: strides, overlaps and sharing of storage are kept."""
        storages: dict[int, torch.UntypedStorage] = {}

        def copied(name: str, tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in storages:
                storages[storage._cdata] = storage.clone()  # type: ignore[no-untyped-call]
            fresh = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            where = storages[storage._cdata]
            return fresh.set_(where, tensor.storage_offset(), tensor.size(), tensor.stride())

        return self.map(copied)

    def copy_to_cpu(self) -> Case:
        """The same call on copies in host memory."""
        return self.copy().map(lambda name, tensor: tensor.cpu())

    def on(self, device: str) -> Case:
        """The same call with the tensors of host memory on a device."""
        return self.map(lambda name, tensor: tensor.to(device) if tensor.is_cpu else tensor)

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
        resized, tensors = self.resized.tensors, self.tensors
        kinds = [{n: (t.dim(), t.dtype) for n, t in of.items()} for of in (tensors, resized)]
        if kinds[0] != kinds[1]:
            raise AssertionError(
                f"{self.name}: 'resized' of sample {self.sample.name!r} must have the same tensor"
                " arguments, with the same ranks and dtypes; only sizes and values may differ"
            )
        return {
            name: [d for d in range(t.dim()) if t.size(d) != resized[name].size(d)]
            for name, t in tensors.items()
        }

    @cached_property
    def expected(self) -> Run:
        """Return the reference's results for this sample, and the arguments that it mutates.

        Raises:
            AssertionError: the op has no reference, or it returns None for a tensor.
        """
        if self.op.reference is None:
            raise AssertionError(
                f"{self.name} has no reference; add one to custom_pypto_references() of its plugin"
            )
        call = self.copy_to_cpu()
        call.seed()
        returned = self.op.reference.function(*call.args, **call.kwargs)
        self.expect_tensors(returned, "reference, or definition in ops.toml,")
        return Run(returned, call.mutable)

    def expect_tensors(self, returned: object, what: str) -> None:
        """Raise AssertionError if the results of `what` do not fit the schema."""
        returns = tensor_returns(self.op.schema)
        fault = describe_wrong(returned, returns) if returns else ""
        if fault:
            raise AssertionError(f"{self.name}: its {what} {fault}")

    @cached_property
    def graph_key(self) -> str:
        """A key that is equal for two cases if torch.compile makes the same graph for both.

        It makes other graphs for None instead of a tensor, other numbers of dimensions, sizes that
        are 0 or 1, and other scalars; not for other dtypes. It copies the values of floats, so only
        0, 1, the sign and values that are not finite count here.
        """

        def stand_in(name: str, tensor: torch.Tensor) -> torch.Tensor:
            dtype = torch.float32 if tensor.is_floating_point() else torch.int64
            return torch.empty([min(each, 2) for each in tensor.shape], dtype=dtype, device="meta")

        call = self.map(stand_in)
        kwargs = {name: _stand_in_of_float(value) for name, value in call.kwargs.items()}
        return f"{self.name} {[*map(_stand_in_of_float, call.args)]} {kwargs}"

    @property
    def is_on_cpu(self) -> bool:
        """Whether every tensor is on the CPU."""
        return all(tensor.is_cpu for tensor in self.tensors.values())

    @property
    def is_float64(self) -> bool:
        """Whether there are tensors that get a gradient and all are float64, for gradcheck."""
        return {t.dtype for t in self.differentiable.values()} == {torch.float64}


def refusal_of(run: Callable[[], object]) -> str:
    """Return the first line of the error of a call; '' if there is none."""
    try:
        run()
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return ""


def one_of_each_graph(cases: Iterable[Case]) -> list[Case]:
    """Return one case for each graph, with `resized` where a sample has it."""
    chosen: dict[str, Case] = {}
    for case in sorted(cases, key=lambda each: each.sample.resized is None):
        chosen.setdefault(case.graph_key, case)
    return list(chosen.values())


def _stand_in_of_float(value: object) -> object:
    if not isinstance(value, float) or value in (0, 1) or not math.isfinite(value):
        return value
    return math.copysign(0.5, value)


def _map(name: str, value: Any, change: Change) -> Any:
    if isinstance(value, torch.Tensor):
        return change(name, value)
    if isinstance(value, list | tuple):
        return type(value)(_map(f"{name}[{i}]", each, change) for i, each in enumerate(value))
    return value


def describe_arguments(given: Mapping[str, Any]) -> str:
    """Return arguments on one line: ``query=float16[2, 8], block_table=None, scale=0.5``."""
    return ", ".join(f"{name}={describe_argument(value)}" for name, value in given.items())

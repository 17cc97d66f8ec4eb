"""One call of an op, with its tensors by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload


@dataclass(frozen=True)
class Call:
    """An op with the arguments to call it with."""

    op: OpOverload[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The op without its namespace, with its overload if that has a name."""
        return self.op._schema.name.split("::")[-1] + (
            f".{self.op._overloadname}" if self.op._overloadname != "default" else ""
        )

    @property
    def is_random(self) -> bool:
        """Whether the op draws from torch's generators."""
        return torch.Tag.nondeterministic_seeded in self.op.tags

    def run(self) -> Any:
        """Call the op and return what it returns; a random op draws the same numbers each time."""
        self.seed()
        return self.op(*self.args, **self.kwargs)

    def seed(self) -> None:
        """Seed torch's generators if the op draws from them."""
        if self.is_random:
            torch.manual_seed(0)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments given, by name."""
        return dict(self._values())

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors given, by argument name; those of a list as ``name[0]``, ``name[1]``, ..."""
        found: dict[str, torch.Tensor] = {}
        for name, value in self._values():
            found.update(_tensors(name, value))
        return found

    @property
    def mutable(self) -> dict[str, torch.Tensor]:
        """The tensors of the arguments that the schema marks as written to, such as ``(a!)``."""
        written = [
            argument.name
            for argument in self.op._schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        return {name: t for name, t in self.tensors.items() if name.split("[")[0] in written}

    @property
    def immutable(self) -> dict[str, torch.Tensor]:
        """The tensors of the arguments that the schema does not mark as written to."""
        mutable = self.mutable
        return {name: t for name, t in self.tensors.items() if name not in mutable}

    @property
    def differentiable(self) -> dict[str, torch.Tensor]:
        """The tensors that may get a gradient: floating-point, positional and not written to."""
        by_name = {each.name for each in self.op._schema.arguments if each.kwarg_only}
        return {
            name: tensor
            for name, tensor in self.immutable.items()
            if tensor.is_floating_point() and name.partition("[")[0] not in by_name
        }

    def map(self, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Call:
        """The same call with each tensor replaced by ``change(name, tensor)``."""
        changed = [_map(name, value, change) for name, value in self._values()]
        positional = tuple(changed[: len(self.args)])
        return Call(
            self.op, positional, dict(zip(self.kwargs, changed[len(self.args) :], strict=True))
        )

    def replace(self, tensors: Mapping[str, torch.Tensor]) -> Call:
        """The same call with the tensors named in `tensors` replaced."""
        return self.map(lambda name, tensor: tensors.get(name, tensor))

    def copy(self) -> Call:
        """The same call on copies: strides, overlaps and sharing of storage are kept."""
        storages: dict[int, torch.UntypedStorage] = {}

        def copied(name: str, tensor: torch.Tensor) -> torch.Tensor:
            del name
            storage = tensor.untyped_storage()
            if storage._cdata not in storages:
                storages[storage._cdata] = storage.clone()  # type: ignore[no-untyped-call]
            fresh = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            where = storages[storage._cdata]
            return fresh.set_(where, tensor.storage_offset(), tensor.size(), tensor.stride())

        return self.map(copied)

    def on_cpu(self) -> Call:
        """The same call on copies in host memory."""
        copy = self.copy()
        return copy.map(lambda name, tensor: tensor.cpu())

    def on(self, device: str) -> Call:
        """The same call with the tensors of host memory on a device."""
        return self.map(lambda name, tensor: tensor.to(device) if tensor.is_cpu else tensor)

    def _values(self) -> Iterator[tuple[str, Any]]:
        names = (argument.name for argument in self.op._schema.arguments)
        yield from zip(names, self.args, strict=False)
        yield from self.kwargs.items()


def outputs(result: object) -> dict[str, Any]:
    """Flatten an op's results by name: ``output``, or ``output 0``, ``output 1[2]``, ..."""
    if result is None:
        return {}
    if isinstance(result, tuple):
        return {
            name: value
            for index, each in enumerate(result)
            for name, value in _leaves(f"output {index}", each)
        }
    return dict(_leaves("output", result))


def tensor_outputs(result: object) -> dict[str, torch.Tensor]:
    """The tensors among `outputs`."""
    return {n: value for n, value in outputs(result).items() if isinstance(value, torch.Tensor)}


def _leaves(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield f"{name}[{index}]", each
    else:
        yield name, value


def _tensors(name: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    for leaf, each in _leaves(name, value):
        if isinstance(each, torch.Tensor):
            yield leaf, each


def _map(name: str, value: Any, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(name, value)
    if isinstance(value, list | tuple):
        return type(value)(_map(f"{name}[{i}]", each, change) for i, each in enumerate(value))
    return value

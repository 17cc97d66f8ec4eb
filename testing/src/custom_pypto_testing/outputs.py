"""An op's results by name, and the memory of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch


def outputs(result: object) -> dict[str, Any]:
    """Flatten an op's results by name: ``output``, or ``output 0``, ``output 1[2]``, ..."""
    if result is None:
        return {}
    if isinstance(result, tuple):
        return {
            name: value
            for index, each in enumerate(result)
            for name, value in leaves(f"output {index}", each)
        }
    return dict(leaves("output", result))


def tensor_outputs(result: object) -> dict[str, torch.Tensor]:
    """Return the tensors among `outputs`."""
    return {n: value for n, value in outputs(result).items() if isinstance(value, torch.Tensor)}


def leaves(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield a value by its name, or the values in a list as ``name[0]``, ``name[1]``, ..."""
    if isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield f"{name}[{index}]", each
    else:
        yield name, value


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return all memory that a tensor lies in, as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def named_arguments(mutable: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The mutable arguments by the name that messages give them."""
    return {f"argument '{name}'": tensor for name, tensor in mutable.items()}


@dataclass(frozen=True)
class Run:
    """What a call returned, and the arguments that it mutated."""

    returned: Any
    mutated: Mapping[str, torch.Tensor]

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Both, by the names that messages give them."""
        return tensor_outputs(self.returned) | named_arguments(self.mutated)

    def equals(self, other: Run) -> bool:
        """Whether both have only tensors, and these are equal."""
        one, two = self.tensors, other.tensors
        names = {*outputs(self.returned), *named_arguments(self.mutated)}
        return {*one} == {*two} == names and all(
            each.dtype is two[name].dtype and each.equal(two[name]) for name, each in one.items()
        )

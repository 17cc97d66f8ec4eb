"""Writes to arguments, version counters, and memory that results share."""

from __future__ import annotations

from itertools import combinations

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.outputs import storage_bytes, tensor_outputs


def check_unchanged(case: Case) -> None:
    """The op writes to no byte of an argument that its schema does not mark as mutable."""
    call = case.copy()
    mutable = {tensor.untyped_storage()._cdata for tensor in call.mutable.values()}
    kept = {
        name: tensor
        for name, tensor in call.immutable.items()
        if tensor.untyped_storage()._cdata not in mutable
    }
    before = {name: storage_bytes(tensor).clone() for name, tensor in kept.items()}
    call.run()
    for name, tensor in kept.items():
        if not storage_bytes(tensor).equal(before[name]):
            raise AssertionError(
                f"{case.name}: argument '{name}' was written to, but the schema does not say so;"
                f" if that is meant, declare it as 'Tensor(a!) {name}'"
            )


def check_versions(case: Case) -> None:
    """The op bumps the version counter of every mutable argument, and of no other."""
    call = case.copy()
    before = {name: tensor._version for name, tensor in call.tensors.items()}
    call.run()
    for name, tensor in call.tensors.items():
        bumped = tensor._version > before[name]
        if name in call.mutable and not bumped:
            raise AssertionError(
                f"{case.name}: the version counter of the mutated argument '{name}' was not bumped;"
                " autograd would use the new values where it saved the old ones. Register the"
                " kernel with impl<> of CUSTOM_PYPTO_PLUGIN, which bumps it"
            )
        if name not in call.mutable and bumped:
            raise AssertionError(
                f"{case.name}: the version counter of argument '{name}' was bumped, but the schema"
                " does not mark it as mutable"
            )


def check_aliasing(case: Case) -> None:
    """No output shares memory with an argument or with another output."""
    call = case.copy()
    results = tensor_outputs(call.run())
    for name, result in results.items():
        for argument, tensor in call.tensors.items():
            if _share_memory(result, tensor):
                raise AssertionError(
                    f"{case.name}: {name} shares memory with argument '{argument}';"
                    " allocate a new tensor"
                )
    for (name, result), (other, tensor) in combinations(results.items(), 2):
        if _share_memory(result, tensor):
            raise AssertionError(
                f"{case.name}: {name} shares memory with {other}; allocate one tensor for each"
            )


def _share_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    one, other = left.untyped_storage(), right.untyped_storage()
    if one._cdata == other._cdata:
        return True
    start = max(one.data_ptr(), other.data_ptr())
    return start < min(one.data_ptr() + one.nbytes(), other.data_ptr() + other.nbytes())

"""An op of custom_pypto as MindSpore calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import custom_pypto.core
import mindspore
import numpy as np
import torch
from custom_pypto_discovery.installed_plugin import op_family
from mindspore.graph.jit_context import jit_context
from mindspore.ops import PrimitiveWithInfer

from .gradient import Computation, compute
from .memory import dtype_name

# Tensors that torch could take and that are not MindSpore's.
_FOREIGN = (torch.Tensor, np.ndarray)


class Op(PrimitiveWithInfer):  # type: ignore[misc]
    """An op on MindSpore's tensors.

    It is a primitive: MindSpore's compiler calls a primitive's `__infer__`, which can refuse, and
    reads the source of any other callable.
    """

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The op's contract, for `help`."""
        return str(self._op.__doc__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op on the memory of the tensors; MindSpore can differentiate the call."""
        if jit_context():
            raise self._compile_error()
        self._check_device()
        given = (args, kwargs)
        result: Any = None

        def run(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            nonlocal result
            rest = iter(tensors)
            torch_args, torch_kwargs = map_leaves(lambda leaf: as_torch(leaf, rest), given)
            result = self._op(*torch_args, **torch_kwargs)
            return leaves(result, torch.Tensor)

        def as_torch(leaf: Any, tensors: Iterator[torch.Tensor]) -> Any:
            if isinstance(leaf, mindspore.Tensor):
                return next(tensors)
            if isinstance(leaf, mindspore.Type):
                return getattr(torch, dtype_name(leaf))
            if isinstance(leaf, _FOREIGN):
                raise self._foreign_tensor_error(leaf, args, kwargs)
            return leaf

        tensors = leaves(given, mindspore.Tensor)

        def name_argument(place: int) -> str:
            name = self._find_argument(tensors[place], args, kwargs)
            return f"{self.name}: argument '{name}'" if name else str(self.name)

        computation = Computation(self.name, run, name_argument, self._has_gradient)
        results = iter(compute(computation, tensors))
        return map_leaves(
            lambda leaf: next(results) if isinstance(leaf, torch.Tensor) else leaf, result
        )

    def __infer__(self, *_: Any) -> Any:
        """Tell MindSpore's compiler that it cannot compile the op."""
        raise self._compile_error()

    def __repr__(self) -> str:
        return f"<custom_pypto_mindspore.ops.{self.name}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Op:
        """Return the op itself, so that copies of a `Cell` share it."""
        return self

    @cached_property
    def _op(self) -> Any:
        return getattr(torch.ops.custom_pypto, self.name)

    @cached_property
    def _has_gradient(self) -> bool:
        return any(
            key.startswith("Autograd") or key == "CompositeImplicitAutograd"
            for record in custom_pypto.core.ops()
            if op_family(record.name) == self.name
            for key in record.dispatch_keys
        )

    def _compile_error(self) -> RuntimeError:
        return RuntimeError(
            f"{self.name}: cannot be compiled by MindSpore: call it in PyNative mode, outside of"
            " functions under mindspore.jit and of Cells in GRAPH_MODE"
        )

    def _check_device(self) -> None:
        target = mindspore.get_context("device_target")
        if target != "CPU":
            raise NotImplementedError(
                f"{self.name}: runs on MindSpore's CPU backend so far, got the device target"
                f" {target}: the streams of two frameworks would have to be ordered there"
                " (docs/mindspore.md); call mindspore.set_device('CPU') before the first tensor"
                " is made, or use torch_npu"
            )

    def _foreign_tensor_error(
        self, foreign: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TypeError:
        """Make the error for a torch tensor, whose gradient would be lost, or a NumPy array."""
        name = self._find_argument(foreign, args, kwargs)
        subject = f"argument '{name}' has" if name else "got"
        kind = "torch.Tensor" if isinstance(foreign, torch.Tensor) else "numpy.ndarray"
        return TypeError(
            f"{self.name}: {subject} a {kind}, but tensors must be MindSpore's here; make a"
            " mindspore.Tensor of it"
        )

    def _find_argument(
        self, leaf: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str | None:
        """Return the name of the argument that holds `leaf`; None if it is one too many."""
        schema = getattr(self._op, self._op.overloads()[0])._schema
        names: list[str] = [*(each.name for each in schema.arguments[: len(args)]), *kwargs]
        for name, value in zip(names, (*args, *kwargs.values()), strict=False):
            if any(each is leaf for each in leaves(value, object)):
                return name
        return None


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Replace each leaf of nested lists, tuples and dicts by `function` of it, in order."""
    if isinstance(value, dict):
        return {key: map_leaves(function, each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(function, each) for each in value)
    return function(value)


def leaves(value: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """Return the leaves of `value` that are of `kind`, in order."""
    found: list[Any] = []

    def visit(leaf: Any) -> None:
        if isinstance(leaf, kind):
            found.append(leaf)

    map_leaves(visit, value)
    return found

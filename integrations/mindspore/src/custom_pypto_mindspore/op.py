"""An op of custom_pypto as MindSpore calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import custom_pypto.core
import mindspore
import numpy as np
import torch
from mindspore.graph.jit_context import jit_context
from mindspore.ops import PrimitiveWithInfer

from .computation import Computation
from .gradient import compute
from .memory import dtype_name
from .nested import leaves, map_leaves

# What torch could take, and is not MindSpore's.
_FOREIGN = (torch.Tensor, np.ndarray)


class Op(PrimitiveWithInfer):  # type: ignore[misc]
    """An op on MindSpore's tensors.

    It is a primitive since MindSpore's compiler asks those what they are, and so hears that it
    cannot compile them; of other callables it reads the source.
    """

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What `help` shows: the op's contract."""
        return str(self._op.__doc__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op on the memory of the tensors; MindSpore differentiates it if it is asked."""
        if jit_context():
            raise self._not_compiled()
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
                raise self._not_mindspores(leaf, args, kwargs)
            return leaf

        def argument(place: int) -> str:
            return self._argument(place, args, kwargs)

        computation = Computation(self.name, run, argument, self._has_gradient)
        results = iter(compute(computation, leaves(given, mindspore.Tensor)))
        return map_leaves(
            lambda leaf: next(results) if isinstance(leaf, torch.Tensor) else leaf, result
        )

    def __infer__(self, *_: Any) -> Any:
        """Tell MindSpore's compiler that it cannot compile the op."""
        raise self._not_compiled()

    def __repr__(self) -> str:
        return f"<custom_pypto_mindspore.ops.{self.name}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Op:
        """Return the op itself: there is one of a name, in every copy of a `Cell` that has it."""
        return self

    @cached_property
    def _op(self) -> Any:
        return getattr(torch.ops.custom_pypto, self.name)

    @cached_property
    def _has_gradient(self) -> bool:
        return any(
            key.startswith("Autograd") or key == "CompositeImplicitAutograd"
            for record in custom_pypto.core.ops()
            if record.name.partition(".")[0] == self.name
            for key in record.dispatch_keys
        )

    def _not_compiled(self) -> RuntimeError:
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

    def _not_mindspores(
        self, foreign: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TypeError:
        """Of torch's tensors the gradient would be lost: nobody records for them here."""
        has_it = (
            f"argument '{name}' has"
            for name, value in self._named(args, kwargs)
            if any(leaf is foreign for leaf in leaves(value, _FOREIGN))
        )
        kind = "torch.Tensor" if isinstance(foreign, torch.Tensor) else "numpy.ndarray"
        # It may be one argument too many.
        return TypeError(
            f"{self.name}: {next(has_it, 'got')} a {kind}, but tensors must be MindSpore's here;"
            " make a mindspore.Tensor of it"
        )

    def _argument(self, place: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Name the argument that has the tensor at `place`, of all tensors of the call."""
        for name, value in self._named(args, kwargs):
            place -= len(leaves(value, mindspore.Tensor))
            if place < 0:
                return f"{self.name}: argument '{name}'"
        return str(self.name)

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The arguments of a call by the names of the schema."""
        schema = getattr(self._op, self._op.overloads()[0])._schema
        names = [*(each.name for each in schema.arguments[: len(args)]), *kwargs]
        return zip(names, (*args, *kwargs.values()), strict=False)

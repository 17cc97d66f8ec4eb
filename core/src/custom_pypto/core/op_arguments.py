"""The arguments of an op by its schema, and their checks before a Python kernel runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

from custom_pypto.core.errors import LoadError
from custom_pypto.core.registry import NAMESPACE
from custom_pypto.core.symbols import decide_statically


class OpArguments:
    """The arguments of an op that is registered."""

    def __init__(self, op: str) -> None:
        """Read the schema of `op`."""
        self._op = op
        name, _, overload = op.partition(".")
        self._schema = torch._C._get_schema(f"{NAMESPACE}::{name}", overload)
        arguments = list(enumerate(self._schema.arguments))
        self._required = [
            (position, each.name)
            for position, each in arguments
            if each.type.kind() == "TensorType"
        ]
        self._mutated = [
            (position, each.name)
            for position, each in arguments
            if each.alias_info is not None and each.alias_info.is_write
        ]

    def guard(
        self, function: Callable[..., Any], *, writes: bool = True, is_fake: bool = False
    ) -> Callable[..., Any]:
        """Return `function` with the checks that a kernel of a library has.

        None where the schema says Tensor is an error. With `writes`, elements that share memory in
        an argument that the op mutates are an error too. The version counters of these arguments
        are bumped before `function` runs, unless it is a fake.
        """
        mutated = self._mutated if writes else []

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for position, name in self._required:
                if _value(position, name, args, kwargs) is None:
                    raise RuntimeError(f"{self._op}: argument '{name}' must be a tensor, got None")
            written = Written(self._op, bumps=not is_fake)
            for position, name in mutated:
                written.add(name, _value(position, name, args, kwargs))
            return function(*args, **kwargs)

        return checked

    def expect_taken_by(self, function: Callable[..., Any], what: str) -> None:
        """Check that `function` takes these arguments by their names.

        Raises:
            LoadError: it does not. `what` names it in the text, such as "the CPU kernel".
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            # A built-in function without a signature.
            return
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            return
        given = [(each.name, each.kind is each.KEYWORD_ONLY) for each in parameters]
        declared = [(each.name, each.kwarg_only) for each in self._schema.arguments]
        without_default = {each.name for each in parameters if each.default is each.empty}
        # torch leaves out what equals the schema's default.
        optional = {each.name for each in self._schema.arguments if each.has_default_value()}
        if given != declared or without_default & optional:
            raise LoadError(
                f"{self._op}: {what} must take the arguments of the schema, {self._schema}, by"
                f" their names and with its defaults, but it is"
                f" {getattr(function, '__name__', 'function')}{inspect.signature(function)}"
            )


def _value(position: int, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    # torch leaves out what equals its default.
    return args[position] if position < len(args) else kwargs.get(name)


class Written:
    """The tensors that one call of an op writes to; mutation.h has these checks in C++.

    Without `bumps`, as for a fake, they are only checked.
    """

    def __init__(self, op: str, *, bumps: bool) -> None:
        """Start with no tensor of a call of `op`."""
        self._op = op
        self._bumps = bumps
        self._tensors: list[tuple[str, torch.Tensor]] = []

    def add(self, argument: str, value: Any) -> None:
        """Check an argument (a tensor, a list or None), and tell autograd that it is written to.

        Raises:
            RuntimeError: elements share memory, or autograd forbids the write.
        """
        if value is None:
            return
        if not isinstance(value, torch.Tensor):
            for each in value:
                self.add(argument, each)
            return
        # Where symbols leave it open, the kernel checks.
        if decide_statically(value.numel() != 0):
            self._expect_own_elements(argument, value)
            self._expect_own_start(argument, value)
        if self._bumps:
            self._bump(argument, value)

    def _expect_own_elements(self, argument: str, tensor: torch.Tensor) -> None:
        for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if decide_statically(size > 1) and decide_statically(stride == 0):
                raise RuntimeError(
                    f"{self._op}: argument '{argument}' is written in place, but all {size} of its"
                    f" dimension {dim} are at the same memory (stride 0), as expand() makes them;"
                    " pass a tensor with memory for each element, such as its contiguous()"
                )

    def _expect_own_start(self, argument: str, tensor: torch.Tensor) -> None:
        for other, earlier in self._tensors:
            if _is_same_start(earlier, tensor):
                raise RuntimeError(
                    f"{self._op}: argument '{argument}' is written in place, but begins at the same"
                    f" memory as argument '{other}', which is written too; pass a tensor of its"
                    " own, such as a clone()"
                )
        self._tensors.append((argument, tensor))

    def _bump(self, argument: str, tensor: torch.Tensor) -> None:
        written = f"{self._op}: argument '{argument}' is written in place,"
        way_out = "Call the op under torch.no_grad() or pass a detached tensor."
        if torch.is_grad_enabled() and not tensor.is_leaf:
            raise RuntimeError(
                f"{written} but it requires grad and an op that writes to an argument has no"
                f" gradient. {way_out}"
            )
        try:
            # An in-place op that changes nothing, on every device.
            tensor.transpose_(0, 0)
        except RuntimeError as error:
            reason = f"{str(error).rstrip('.')}."
            # torch's own text for inference tensors already says what to do.
            advice = "" if "nference tensor" in reason else f" {way_out}"
            raise RuntimeError(f"{written} which torch refuses: {reason}{advice}") from error


def _is_same_start(one: torch.Tensor, other: torch.Tensor) -> bool:
    # Fake tensors have storages, but no addresses.
    if one.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False
    starts = [each.storage_offset() * each.element_size() for each in (one, other)]
    return decide_statically(starts[0] == starts[1]) is True

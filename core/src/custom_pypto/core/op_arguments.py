"""The arguments of an op by its schema, and what is checked of them before a Python kernel runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

from custom_pypto.core.errors import LoadError
from custom_pypto.core.registry import NAMESPACE


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

    def guarded(self, function: Callable[..., Any], *, writes: bool = False) -> Callable[..., Any]:
        """Return `function` with what a kernel of a library has.

        None where the schema says Tensor is an error, and with `writes` the version counters of the
        arguments that the op mutates are bumped before it runs.
        """
        mutated = self._mutated if writes else []

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for position, name in self._required:
                if _value(position, name, args, kwargs) is None:
                    raise RuntimeError(f"{self._op}: argument '{name}' must be a tensor, got None")
            for position, name in mutated:
                self._bump(name, _value(position, name, args, kwargs))
            return function(*args, **kwargs)

        return checked

    def expect_taken_by(self, function: Callable[..., Any], what: str) -> None:
        """Check that `function` takes these arguments by their names.

        Raises:
            LoadError: it does not; `what` it is, such as "the CPU kernel", is part of the text.
        """
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            # Some built-in functions have no signature.
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

    def _bump(self, name: str, value: Any) -> None:
        """Tell autograd that an argument is written to; mutation.h does so for a library."""
        if value is None:
            return
        if not isinstance(value, torch.Tensor):
            for each in value:
                self._bump(name, each)
            return
        written = f"{self._op}: argument '{name}' is written in place,"
        way_out = "Call the op under torch.no_grad() or pass a detached tensor."
        if torch.is_grad_enabled() and not value.is_leaf:
            raise RuntimeError(
                f"{written} but it requires grad and an op that writes to an argument has no"
                f" gradient. {way_out}"
            )
        try:
            # Changes nothing, is an in-place op to autograd and works on every device.
            value.transpose_(0, 0)
        except RuntimeError as error:
            reason = f"{str(error).rstrip('.')}."
            # torch's own text for inference tensors already says what to do.
            advice = "" if "nference tensor" in reason else f" {way_out}"
            raise RuntimeError(f"{written} which torch refuses: {reason}{advice}") from error


def _value(position: int, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    # torch leaves out what equals its default.
    return args[position] if position < len(args) else kwargs.get(name)

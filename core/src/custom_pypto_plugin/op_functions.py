"""Ops as functions of modules that must not import core while they are imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def op_function(op: str) -> Callable[[F], F]:
    """Make a function call `op`, such as ``"add_custom"`` or ``"foo.overload"``.

    Only the function's signature and docstring count. Its first call imports core, and raises an
    AttributeError with core's reason if there is no such op.
    """

    def decorate(declared: F) -> F:
        found = None

        # Arguments are passed on as they are: to bind them, or to pass defaults, would cost more.
        @functools.wraps(declared)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal found
            if found is None:
                looked_up, is_final = _look_up(op)
                if not is_final:
                    return looked_up(*args, **kwargs)
                found = looked_up
            return found(*args, **kwargs)

        return cast(F, call)

    return decorate


def _look_up(op: str) -> tuple[Callable[..., Any], bool]:
    """Return an op, and whether it stays: while its plugin loads, that may still fail."""
    import torch
    from custom_pypto.core.derivative import function_of

    name, _, overload = op.partition(".")
    function = getattr(getattr(torch.ops.custom_pypto, name), overload or "default")
    # What torch's compiler traces needs no way past autograd.
    if torch.compiler.is_dynamo_compiling():
        return function, False
    return function_of(op, function), name in vars(torch.ops.custom_pypto)

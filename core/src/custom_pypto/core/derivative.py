"""Registers the derivative of an op with the dispatcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._library.autograd
from custom_pypto_plugin import Autograd

from custom_pypto.core.registry import NAMESPACE


def register_derivative(op: str, formula: Autograd, library: torch.library.Library) -> None:
    """Register a derivative; raises what torch says where it refuses it."""
    backward = formula.backward
    if formula.is_once_differentiable:
        backward = _once(op, backward)
    name, setup = f"{NAMESPACE}::{op}", formula.setup_context
    function: Any = torch._library.utils.lookup_op(name)
    if not torch._library.utils.has_kwarg_only_tensors(function._schema):
        torch.library.register_autograd(name, backward, setup_context=setup, lib=library)
        return
    # torch's function does the same, but for these it refuses: as gradients flow to positional
    # arguments alone, it would be wrong of ops whose other tensors have some. Lengths have none.
    info = torch._library.autograd.Info(backward, setup)
    derivative = torch._library.autograd.make_autograd_impl(function, info)
    library.impl(op, derivative, "Autograd", with_keyset=True)  # type: ignore[no-untyped-call]


def _once(op: str, backward: Callable[..., Any]) -> Callable[..., Any]:
    """Make gradients of which a derivative is an error; torch's own decorator would name no op."""

    def backward_once(ctx: Any, *grads: Any) -> Any:
        with torch.no_grad():
            made = backward(ctx, *grads)
        if not torch.is_grad_enabled():
            return made
        gradients = made if isinstance(made, tuple) else (made,)
        # A second derivative comes by here only if the error depends on what it is taken of.
        origins = [
            each
            for each in (*ctx.saved_tensors, *grads)
            if isinstance(each, torch.Tensor) and each.requires_grad
        ]
        refused = torch._C._functions.DelayedError(
            f"{op} has no second derivative; take the first without create_graph=True, or detach"
            " its result",
            len(gradients) + len(origins),
        )
        found = refused(*gradients, *origins)
        return found[: len(gradients)] if isinstance(found, tuple) else found

    return backward_once

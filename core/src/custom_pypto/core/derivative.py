"""Registers the derivative of an op with the dispatcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from custom_pypto_plugin.contributions import Autograd

from custom_pypto.core.records import NAMESPACE


def register_derivative(op: str, formula: Autograd, library: torch.library.Library) -> None:
    """Register a derivative; raises what torch says where it refuses it."""
    backward = formula.backward
    if formula.is_once_differentiable:
        backward = _once(op, backward)
    name, setup = f"{NAMESPACE}::{op}", formula.setup_context
    try:
        torch.library.register_autograd(name, backward, setup_context=setup, lib=library)
    except NotImplementedError:
        _register_with_keyword_tensors(op, backward, setup, library)


def _register_with_keyword_tensors(
    op: str,
    backward: Callable[..., Any],
    setup: Callable[..., Any] | None,
    library: torch.library.Library,
) -> None:
    """Register the derivative of an op with keyword-only tensors, which torch's function refuses.

    Gradients flow to positional arguments alone. So keyword-only tensors must have none, as lengths
    have none. This uses private parts of torch, so only ops that need it take this way.
    """
    from torch._library.autograd import Info, make_autograd_impl
    from torch._library.utils import lookup_op

    function: Any = lookup_op(f"{NAMESPACE}::{op}")
    derivative = make_autograd_impl(function, Info(backward, setup))
    library.impl(op, derivative, "Autograd", with_keyset=True)  # type: ignore[no-untyped-call]


def _once(op: str, backward: Callable[..., Any]) -> Callable[..., Any]:
    """Make a second derivative an error that names the op; torch's own decorator does not."""

    def backward_once(ctx: Any, *grads: Any) -> Any:
        context = _Unpacked(ctx)
        with torch.no_grad():
            made = backward(context, *grads)
        if not torch.is_grad_enabled():
            return made
        gradients = made if isinstance(made, tuple) else (made,)
        # autograd meets the error only if it depends on the tensors of the second derivative.
        origins = [
            each
            for each in (*context.saved_tensors, *grads)
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


class _Unpacked:
    """A context whose saved tensors can be read twice, which checkpointing forbids."""

    def __init__(self, ctx: Any) -> None:
        self.saved_tensors = ctx.saved_tensors
        self._ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

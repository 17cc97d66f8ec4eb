"""The derivatives of ops: registered with the dispatcher, and left out where none is wanted.

The function of an op goes past autograd where no gradient can flow.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from custom_pypto_plugin import Autograd
from torch._ops import OpOverload
from torch.compiler import is_dynamo_compiling
from torch.overrides import has_torch_function

from custom_pypto.core.call_text import PLAIN_TENSORS
from custom_pypto.core.dispatcher import keys_with_kernels
from custom_pypto.core.errors import logger
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

    `backward` returns gradients of the positional arguments, and may go on with those of the others
    in the schema's order. This uses private parts of torch, so only ops that need it take this way.
    """
    from torch._library.autograd import Info, make_autograd_impl
    from torch._library.utils import lookup_op

    function: Any = lookup_op(f"{NAMESPACE}::{op}")
    defaults = {each.name: each.default_value for each in function._schema.arguments}
    by_name = [each.name for each in function._schema.arguments if each.kwarg_only]
    first = len(defaults) - len(by_name)

    def split(given: Any) -> tuple[Any, dict[str, Any]]:
        return given[:first], dict(zip(by_name, given[first:], strict=True))

    def redispatch(keys: torch.DispatchKeySet, *given: Any) -> Any:
        args, kwargs = split(given)
        return function.redispatch(keys, *args, **kwargs)

    def setup_all(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        args, kwargs = split(inputs)
        if setup is not None:
            setup(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=output)

    def backward_all(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        found = backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        return (*found, *[None] * (len(defaults) - len(found)))

    # The op as torch's function takes it: its arguments are all positional.
    arguments = [
        SimpleNamespace(name=each.name, type=each.type, kwarg_only=False)
        for each in function._schema.arguments
    ]
    positional: Any = SimpleNamespace(
        _namespace=NAMESPACE,
        _opname=op,
        _overloadname=function._overloadname,
        _schema=SimpleNamespace(arguments=arguments, returns=function._schema.returns),
        redispatch=redispatch,
        tags=function.tags,
    )
    derivative = make_autograd_impl(positional, Info(backward_all, setup_all))

    def kernel(keys: torch.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        # The dispatcher leaves out what equals its default.
        given = {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}
        return derivative(keys, *given.values())

    library.impl(op, kernel, "Autograd", with_keyset=True)  # type: ignore[no-untyped-call]


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


def function_of(op: str, overload: OpOverload[..., Any]) -> Callable[..., Any]:
    """Return the function that calls `op`, whose `overload` in `torch.ops` calls autograd first.

    The kernel of a derivative is Python code of torch; entering it costs more than a small op.
    Where nothing requires grad, it only excludes autograd and calls the op again. The function does
    the same before it enters the dispatcher.
    """
    lists = (each for each in overload._schema.arguments if "List" in str(each.type))
    # torch's checks for grad and subclasses miss some tensors in lists and tuples.
    has_tensor_lists = any("Tensor" in str(each.type) for each in lists)
    if has_tensor_lists or not keys_with_kernels(op, ["Autograd"]):
        return overload
    try:
        return _past_autograd(overload)
    except AttributeError:
        # It uses private parts of torch.
        logger.debug("%s: every call enters its autograd kernel", op, exc_info=True)
        return overload


def _past_autograd(overload: OpOverload[..., Any]) -> Callable[..., Any]:
    # Looked up once, because every call runs them.
    op = overload._op
    below_autograd = torch._C._AutoDispatchBelowAutograd
    any_requires_grad = torch._C._any_requires_grad
    is_grad_enabled = torch.is_grad_enabled
    is_inference = torch.is_inference_mode_enabled
    are_transforms_active = torch._C._are_functorch_transforms_active
    is_key_included = torch._C._dispatch_tls_is_dispatch_key_included
    # The key of dispatch modes.
    mode_key = torch._C._dispatch_key_parse("Python")
    # The key of the vmap in torch.autograd.functional and gradcheck, which is not functorch's.
    vmap_key = torch._C._dispatch_key_parse("VmapMode")

    def call(*args: Any, **kwargs: Any) -> Any:
        if is_dynamo_compiling():
            return overload(*args, **kwargs)
        if is_inference():
            return op(*args, **kwargs)
        given = (*args, *kwargs.values())
        if (
            (is_grad_enabled() and any_requires_grad(*given))
            # A subclass or a mode may turn the call into one with a gradient.
            or has_torch_function(given)
            or is_key_included(mode_key)
            or any(
                isinstance(each, torch.Tensor) and type(each) not in PLAIN_TENSORS for each in given
            )
            # Tensors of transforms hide that the wrapped tensor requires grad.
            or are_transforms_active()
            or is_key_included(vmap_key)
        ):
            return op(*args, **kwargs)
        with below_autograd():
            return op(*args, **kwargs)

    return call

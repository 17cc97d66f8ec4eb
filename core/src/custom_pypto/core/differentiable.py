"""Differentiable ops as Python calls them: past autograd where no gradient can flow."""

from __future__ import annotations

from typing import Any

import torch
from torch import _ops
from torch.overrides import has_torch_function

# Looked up once, because every call runs them.
_BelowAutograd = torch._C._AutoDispatchBelowAutograd
_any_requires_grad = torch._C._any_requires_grad
_is_grad_enabled = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_are_transforms_active = torch._C._are_functorch_transforms_active
_is_key_included = torch._C._dispatch_tls_is_dispatch_key_included
# The key of dispatch modes.
_MODE_KEY = torch._C._dispatch_key_parse("Python")
# The key of the vmap in torch.autograd.functional and gradcheck, which is not functorch's.
_VMAP_KEY = torch._C._dispatch_key_parse("VmapMode")
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def skip_autograd_kernel(packet: _ops.OpOverloadPacket[..., Any], overload: str) -> None:
    """Have calls of an op with a derivative skip its autograd kernel where no gradient can flow.

    That kernel is Python code of torch; entering it costs more than a small op. Where nothing
    requires grad, it only excludes autograd and calls the op again. The call may do the same before
    it enters the dispatcher. A kernel in C++ cannot: torch's stable ABI calls an op anew, and loses
    the type of its exceptions.

    Calls from C++, and calls of ops with lists of tensors, do not change.
    """
    function = getattr(packet, overload)
    has_one_overload = len(packet._overload_names) == 1
    if type(function) is not _ops.OpOverload or any(
        _is_tensor_list(argument) for argument in function._schema.arguments
    ):
        return
    # The objects stay the same: anybody may hold them already.
    function.__class__ = OpOverload
    if has_one_overload:
        packet.__class__ = OpOverloadPacket


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not _is_inference():
        given = (*args, *kwargs.values())
        if not (
            (_is_grad_enabled() and _any_requires_grad(*given))
            # A subclass or a mode may turn the call into one with a gradient.
            or has_torch_function(given)
            or _is_key_included(_MODE_KEY)
            or any(isinstance(each, torch.Tensor) and type(each) not in _PLAIN for each in given)
            # Tensors of transforms hide that the wrapped tensor requires grad.
            or _are_transforms_active()
            or _is_key_included(_VMAP_KEY)
        ):
            with _BelowAutograd():
                return self._op(*args, **kwargs)
    return self._op(*args, **kwargs)


# Named as torch's classes, because their names are printed.
class OpOverload(_ops.OpOverload):  # noqa: D101
    __doc__ = None
    __call__ = _call


class OpOverloadPacket(_ops.OpOverloadPacket):  # noqa: D101
    __doc__ = None
    __call__ = _call


def _is_tensor_list(argument: torch._C.Argument) -> bool:
    # torch's checks for grad and subclasses miss some tensors in lists and tuples.
    return "List" in str(argument.type) and "Tensor" in str(argument.type)

"""A call as Python that can be pasted into a shell."""

from __future__ import annotations

from typing import Any

import torch

from .case import Case

_MOST_VALUES = 512
"""The values of larger storages are not printed."""


def as_python(call: Case) -> str:
    """Return the code that makes the arguments of `call`, with what they share, and runs it.

    The values of storages of more than 512 elements are random instead.
    """
    lines = ["import torch", "from custom_pypto import core"]
    storages: dict[tuple[int, torch.dtype], str] = {}
    bytes_of: dict[int, str] = {}
    arguments: list[str] = []
    for name, value in call.kwargs.items():
        if not isinstance(value, torch.Tensor):
            arguments.append(f"    {name}={_scalar(value)},")
            continue
        plain = torch._neg_view(value) if value.is_neg() else value
        plain = plain.conj() if plain.is_conj() else plain
        storage, dtype = plain.untyped_storage(), plain.dtype
        at = storage._cdata
        if (at, dtype) not in storages:
            variable = storages[at, dtype] = f"{name}_"
            if at in bytes_of:
                lines.append(f"{variable} = {bytes_of[at]}.view({dtype})")
            else:
                bytes_of[at] = f"{variable}.view(torch.uint8)"
                lines.append(f"{variable} = {_values(plain)}")
        view = f"{storages[at, dtype]}.as_strided("
        view += f"{[*plain.shape]}, {[*plain.stride()]}, {plain.storage_offset()})"
        view += ".conj()" * value.is_conj()
        if value.is_neg():
            view = f"torch._neg_view({view})"
        if value.requires_grad:
            view += ".requires_grad_()" + "[...]" * (not value.is_leaf)  # a clone has no gaps
        arguments.append(f"    {name}={view},")
    return "\n".join([*lines, f"torch.ops.{call.op.overload!s}(", *arguments, ")"])


def _scalar(value: Any) -> str:
    # repr of a device has no "torch.", that of inf and nan is no expression.
    if isinstance(value, torch.device):
        return f"torch.{value!r}" if "torch" not in repr(value) else repr(value)
    return f'float("{value}")' if isinstance(value, float) else repr(value)


def _values(tensor: torch.Tensor) -> str:
    """Return an expression for the whole storage, flat."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.is_meta:
        return f'torch.empty({count}, dtype={tensor.dtype}, device="meta")'
    if count > _MOST_VALUES:
        made = f"torch.randint(0, 3, ({count},)).to({tensor.dtype})"
    else:
        whole = torch.empty(0, dtype=tensor.dtype, device="cpu").set_(
            tensor.untyped_storage(), 0, (count,), (1,)
        )
        # There is no list of float8.
        is_float8 = tensor.is_floating_point() and tensor.dtype.itemsize == 1
        text = str((whole.float() if is_float8 else whole).tolist())
        for special in ("nan", "inf"):
            text = text.replace(special, f'float("{special}")')
        made = (
            f"torch.tensor({text}).to({tensor.dtype})"
            if is_float8
            else f"torch.tensor({text}, dtype={tensor.dtype})"
        )
    return f"torch.inference_mode()(lambda: {made})()" if tensor.is_inference() else made

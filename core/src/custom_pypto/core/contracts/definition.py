"""The op as its contract defines it in PyTorch, to compare its kernels with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .arguments import bind

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


def compile_definition(op: OpContract) -> Callable[..., Any] | None:
    """Return the contract's definition as a function; None when it has none."""
    if not op.definition:
        return None
    code = compile(op.definition, f"<definition of {op.name} in ops.toml>", "eval")

    def function(*args: Any, **kwargs: Any) -> Any:
        # All are globals: a comprehension or a generator inside does not see eval's locals.
        value = eval(code, {"torch": torch, **bind(op, args, kwargs)})
        return value if op.schema.returns else None

    return function

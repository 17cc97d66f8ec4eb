"""The op as its contract defines it in PyTorch, to compare its kernels with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .arguments import by_name

if TYPE_CHECKING:
    from custom_pypto_contract.contract import Op


def defined(op: Op) -> Callable[..., Any] | None:
    """Return the function that the contract's definition is; None when it has none."""
    if not op.definition:
        return None
    code = compile(op.definition, f"<definition of {op.name} in ops.toml>", "eval")

    def function(*args: Any, **kwargs: Any) -> Any:
        return eval(code, {"torch": torch}, by_name(op, args, kwargs))

    return function

"""A kernel that is a Python function, behind the checks of its contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .arguments import bind
from .lazy import LazyContract


def checked_kernel(contract: LazyContract, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return `kernel` with the checks that a kernel of a library has by ops.h."""

    @wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        from .evaluation import Evaluation

        op = contract.op
        Evaluation(op, bind(op, args, kwargs)).run_checks()
        return kernel(*args, **kwargs)

    return checked

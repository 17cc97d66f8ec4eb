"""A kernel that is a Python function, behind the checks of its contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from custom_pypto_contract import checks

from .arguments import by_name
from .evaluation import Evaluation
from .lazy import LazyContract


def checked_kernel(contract: LazyContract, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return `kernel` with the checks that a kernel of a library has by ops.h."""

    @wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        op = contract.op
        Evaluation(op, by_name(op, args, kwargs)).run(checks.steps(op))
        return kernel(*args, **kwargs)

    return checked

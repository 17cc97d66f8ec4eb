"""The kernels that a contract gives an op: the fake, and the checks before a Python kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from custom_pypto_discovery.printable import printable

from . import bind_arguments
from .lazy import BY_DATA, LazyContract


def fake_kernel(contract: LazyContract) -> Callable[..., Any]:
    """Return the fake kernel of an op, for symbolic and concrete sizes alike.

    It refuses every call that kernels refuse without reading values, with the same text.
    """

    def fake(*args: Any, **kwargs: Any) -> Any:
        op = contract.op
        from .evaluation import empty_outputs

        if op.outputs is None:
            raise RuntimeError(
                f"{op.name} has no fake kernel, so it cannot be compiled or exported: say in"
                " ops.toml what its outputs are, or return one from the hook custom_pypto_fakes"
            )
        given = bind_arguments(op, args, kwargs)
        try:
            made = empty_outputs(op, given)
        except BY_DATA as error:
            raise contract.blame(error) from error
        return made[0] if len(made) == 1 else made or None

    fake.__name__ = fake.__qualname__ = contract.function_name
    return fake


def checked_kernel(contract: LazyContract, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return `kernel`, a Python function, with the checks that a kernel of a library has.

    A RuntimeError, also of torch's functions that it calls, gets the op's name and is printable.
    """

    @wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        op = contract.op
        from .evaluation import Evaluation, describe_wrong_output

        given = bind_arguments(op, args, kwargs)
        try:
            evaluation = Evaluation(op, given).run_checks()
        except BY_DATA as error:
            raise contract.blame(error) from error
        try:
            results = kernel(*args, **kwargs)
        except RuntimeError as error:
            # A subclass, such as torch.OutOfMemoryError, is there to be caught.
            if type(error) is not RuntimeError:
                raise
            text = str(error)
            named = text if text.startswith(f"{op.name}: ") else f"{op.name}: {text}"
            if (shown := printable(named)) == text:
                raise
            raise RuntimeError(shown) from error
        returned = (results,) if len(op.schema.returns) == 1 else results
        # `OpArguments.guard` refuses results that are no tuple.
        values = returned if isinstance(returned, tuple | list) else ()
        try:
            pairs = zip(op.outputs or (), values, strict=False)
            faults = [describe_wrong_output(*each, given, evaluation) for each in pairs]
        except BY_DATA as error:
            raise contract.blame(error) from error
        if fault := next(filter(None, faults), None):
            raise RuntimeError(f"{op.name}: its kernel returns {fault}")
        return results

    return checked

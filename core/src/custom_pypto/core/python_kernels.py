"""The kernels of a plugin that are Python functions: fakes and autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import torch

from custom_pypto.core.contributions import Autograd
from custom_pypto.core.errors import LoadError
from custom_pypto.core.registry import NAMESPACE


class PythonKernels:
    """Registrations with the dispatcher that live until `remove`."""

    def __init__(self) -> None:
        """Register nothing yet."""
        self._library = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]

    def add_fakes(self, fakes: Mapping[str, Callable[..., Any]]) -> None:
        """Register each op's fake kernel. Raises LoadError with torch's reason."""
        for op, fake in fakes.items():
            try:
                checked = _refusing_none(op, fake)
                torch.library.register_fake(f"{NAMESPACE}::{op}", checked, lib=self._library)
            except Exception as error:
                raise LoadError(f"{op}: torch refused the fake kernel: {error}") from error

    def add_autograd(self, formulas: Mapping[str, Autograd]) -> None:
        """Register each op's derivative. Raises LoadError with torch's reason."""
        for op, formula in formulas.items():
            try:
                torch.library.register_autograd(
                    f"{NAMESPACE}::{op}",
                    formula.backward,
                    setup_context=formula.setup_context,
                    lib=self._library,
                )
            except Exception as error:
                raise LoadError(f"{op}: torch refused the derivative: {error}") from error

    def remove(self) -> None:
        """Drop every registration, at once rather than when the garbage collector comes by."""
        self._library._destroy()  # type: ignore[no-untyped-call]


def _refusing_none(op: str, fake: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fake` with the error of a boxed kernel for None where the schema says Tensor."""
    name, _, overload = op.partition(".")
    arguments = torch._C._get_schema(f"{NAMESPACE}::{name}", overload).arguments
    required = [each.name for each in arguments if each.type.kind() == "TensorType"]

    @wraps(fake)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip((each.name for each in arguments), args, strict=False)) | kwargs
        for argument in required:
            if given.get(argument) is None:  # torch leaves out what equals its default
                raise RuntimeError(f"{op}: argument '{argument}' must be a tensor, got None")
        return fake(*args, **kwargs)

    return checked

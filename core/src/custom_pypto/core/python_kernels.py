"""A plugin's registrations from Python: schemas, kernels, fakes, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from custom_pypto_contract.dispatch_keys import COMPOSED, DEVICE_KEYS, EVERY_DEVICE, NPU
from custom_pypto_contract.errors import find_similar
from custom_pypto_contract.manifest import ManifestOp
from custom_pypto_plugin import Autograd

from custom_pypto.core.contracts.kernels import checked_kernel
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.derivative import register_derivative
from custom_pypto.core.dispatcher import keys_with_kernels
from custom_pypto.core.errors import LoadError
from custom_pypto.core.mutated_slices import call_on_copies, mend_inductor
from custom_pypto.core.namespace import find_overload
from custom_pypto.core.op_arguments import OpArguments
from custom_pypto.core.records import NAMESPACE


class PythonKernels:
    """Registrations with the dispatcher that live until `remove`."""

    def __init__(self) -> None:
        self.library = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]

    def define(self, ops: Iterable[ManifestOp]) -> None:
        """Register the schemas of `ops`. Raises LoadError with torch's reason."""
        for op in ops:
            tags = [torch.Tag.nondeterministic_seeded] if is_random(op) else []
            try:
                self.library.define(op.schema, tags=tags)  # type: ignore[no-untyped-call]
            except Exception as error:
                raise LoadError(f"{op.name}: torch refused the schema: {error}") from error

    def add_kernels(
        self,
        kernels: Mapping[str, Mapping[str, Callable[..., Any]]],
        contracts: Mapping[str, LazyContract],
    ) -> None:
        """Register each op's kernels by dispatch key, behind the checks of its contract.

        Raises:
            LoadError: a key computes on no device, or has a kernel already; or a kernel does not
                take the op's arguments.
        """
        for op, by_key in kernels.items():
            arguments = OpArguments(op)
            for key, kernel in by_key.items():
                _expect_free(op, key)
                arguments.expect_taken_by(kernel, f"the {key} kernel")
                if key != COMPOSED:
                    kernel = checked_kernel(contracts[op], kernel)
                checked = arguments.with_checks(kernel, uses_memory=key != COMPOSED)
                self.library.impl(op, checked, key)  # type: ignore[no-untyped-call]

    def add_failing_kernel(self, op: str, text: str) -> None:
        """Make every call of `op`, which has no kernel, raise RuntimeError with `text`."""

        def fail(*args: object, **kwargs: object) -> None:
            raise RuntimeError(text)

        self.library.impl(op, fail, EVERY_DEVICE)  # type: ignore[no-untyped-call]

    def add_refusal(self, op: str, keys: Sequence[str], contract: LazyContract) -> None:
        """Make calls of `op` that no kernel takes raise the reason; `keys` have kernels."""
        check = checked_kernel(contract, lambda *args, **kwargs: None)
        self.library.impl(op, OpArguments(op).refusal(keys, check), EVERY_DEVICE)  # type: ignore[no-untyped-call]

    def add_for_writes(self, ops: Iterable[str]) -> None:
        """Register what ops that write need besides kernels.

        Registers kernels for views with the negative or conjugate bit, and a rule that makes
        compiled graphs write slices in the right place.
        """
        from torch._subclasses.functional_tensor import FunctionalTensorMode

        below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.Conjugate)
        for op in ops:
            arguments = OpArguments(op)
            if not arguments.has_mutated:
                continue

            def redispatch(
                keys: torch.DispatchKeySet, *args: Any, _op: str = op, **kwargs: Any
            ) -> Any:
                return find_overload(_op).redispatch(keys & below, *args, **kwargs)

            for key in ("Negative", "Conjugate"):
                self.library.impl(op, arguments.resolved(redispatch), key, with_keyset=True)  # type: ignore[no-untyped-call]
            rule = call_on_copies(arguments.map_mutated)
            torch.library.register_torch_dispatch(
                f"{NAMESPACE}::{op}", FunctionalTensorMode, rule, lib=self.library
            )
            mend_inductor()

    def add_fakes(self, fakes: Mapping[str, Callable[..., Any]]) -> None:
        """Register each op's fake kernel.

        Raises:
            LoadError: it does not take the op's arguments, or torch refuses it.
        """
        for op, fake in fakes.items():
            arguments = OpArguments(op)
            arguments.expect_taken_by(fake, "the fake kernel")
            try:
                checked = arguments.with_checks(fake, is_fake=True)
                torch.library.register_fake(f"{NAMESPACE}::{op}", checked, lib=self.library)
            except Exception as error:
                raise LoadError(f"{op}: torch refused the fake kernel: {error}") from error

    def add_autograd(self, formulas: Mapping[str, Autograd]) -> None:
        """Register each op's derivative. Raises LoadError with torch's reason."""
        for op, formula in formulas.items():
            try:
                register_derivative(op, formula, self.library)
            except Exception as error:
                raise LoadError(f"{op}: torch refused the derivative: {error}") from error

    def remove(self) -> None:
        """Drop every registration now, without waiting for the garbage collector."""
        self.library._destroy()  # type: ignore[no-untyped-call]


def is_random(op: ManifestOp) -> bool:
    """Whether the op draws random numbers by its contract."""
    return bool(op.contract.get("random"))


def _expect_free(op: str, key: str) -> None:
    if key not in DEVICE_KEYS:
        folded = {"npu": NPU, **{each.lower(): each for each in DEVICE_KEYS}}
        near = find_similar(key.lower(), folded)
        hint = (
            f"did you mean {folded[near[0]]!r}?" if near else f"there are {', '.join(DEVICE_KEYS)}"
        )
        raise LoadError(f"{op}: {key!r} is no dispatch key for kernels; {hint}")
    if keys_with_kernels(op, [key]):
        raise LoadError(
            f"{op}: the plugin's library registers a {key} kernel already; give the op one of the"
            " two"
        )

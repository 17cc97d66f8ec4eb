"""torch's dispatch keys for which plugins have kernels."""

from __future__ import annotations

from collections.abc import Iterable

CPU = "CPU"
NPU = "PrivateUse1"
EVERY_DEVICE = "CompositeExplicitAutograd"
COMPOSED = "CompositeImplicitAutograd"
"""The key of a kernel that only calls other ops, which have derivatives of their own."""

BACKEND_KEYS = (
    *(CPU, "CUDA", "XPU", "MPS", "HPU", "MTIA", "XLA", NPU, "PrivateUse2", "PrivateUse3"),
    *("SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU", EVERY_DEVICE),
    "CompositeExplicitAutogradNonFunctional",
)
"""Dispatch keys whose kernels read and write memory themselves."""

DEVICE_KEYS = (*BACKEND_KEYS, COMPOSED)
"""Dispatch keys whose kernels compute on devices."""

AUTOGRAD_KEYS = ("Autograd", "AutogradCPU", "AutogradCUDA", f"Autograd{NPU}")

DISPATCH_KEYS = (*DEVICE_KEYS, "Meta", "ADInplaceOrView", *AUTOGRAD_KEYS)
"""Dispatch keys that an `OpRecord` can list."""


def has_device(keys: Iterable[str]) -> bool:
    """Whether a kernel for one of `keys` computes on a device."""
    return not set(DEVICE_KEYS).isdisjoint(keys)

"""torch's dispatch keys for which plugins have kernels."""

from __future__ import annotations

from collections.abc import Iterable

from custom_pypto_discovery.installed_plugin import upgrade

DEVICE_KEYS = (
    "CPU",
    "CUDA",
    "XPU",
    "MPS",
    "HPU",
    "MTIA",
    "XLA",
    "PrivateUse1",
    "PrivateUse2",
    "PrivateUse3",
    "SparseCPU",
    "SparseCsrCPU",
    "QuantizedCPU",
    "NestedTensorCPU",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd",
)
"""Dispatch keys whose kernels compute on devices; ``PrivateUse1`` is an NPU."""

DISPATCH_KEYS = (
    *DEVICE_KEYS,
    "Meta",
    "ADInplaceOrView",
    "Autograd",
    "AutogradCPU",
    "AutogradCUDA",
    "AutogradPrivateUse1",
)
"""Dispatch keys that an `OpRecord` can list."""


def has_device(keys: Iterable[str]) -> bool:
    """Whether a kernel for one of `keys` computes on a device."""
    return not set(DEVICE_KEYS).isdisjoint(keys)


def describe_missing_kernel(op: str, distribution: str) -> tuple[str, str]:
    """Return what is wrong with an op that has no kernel for any device, and what to do."""
    advice = (
        f"upgrade the plugin: {upgrade(distribution)}; its author registers kernels in C++ or by"
        " the hook custom_pypto_kernels"
    )
    return f"{op} has no kernel for any device: its plugin registers none", advice

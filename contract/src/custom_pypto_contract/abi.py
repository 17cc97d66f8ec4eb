"""The versions that a plugin's wheel and a core agree on."""

from __future__ import annotations

MANIFEST_VERSION = 1
"""The form of the manifest. A core reads its own version and all before it."""
CONTRACT_VERSION = 1
"""The form of the contracts in a manifest. A core reads its own version and all before it."""
CORE_ABI = (1, 0)
"""The C++ ABI between core and plugins (major, minor); abi.h has the same numbers."""
TORCH_TARGET = (2, 10)
"""The oldest PyTorch whose stable ABI plugins are compiled for (major, minor)."""
OLDEST_TORCH = ".".join(map(str, TORCH_TARGET))
TORCH_NPU = ("2.10", "2.11", "2.12", "2.13", "2.14")
"""The releases of torch_npu that have the functions which core looks up, oldest first."""
REGISTER = "custom_pypto_register_v1"
UNREGISTER = "custom_pypto_unregister_v1"
"""The functions of a plugin's library that core calls to load and unload it, of plugin.h."""
CPU_ISA = "custom_pypto_cpu_isa_v1"
NPU_KERNELS = "custom_pypto_npu_kernels_v1"
NPU_LAUNCHES = "custom_pypto_npu_launches_v1"
NPU_COMPARE_BY = "custom_pypto_npu_compare_by_v1"
"""The functions that a library may have besides."""


def offers(have: tuple[int, int], need: tuple[int, int]) -> bool:
    """Whether the core ABI `have` is enough where `need` is needed."""
    return have[0] == need[0] and have[1] >= need[1]

"""The environment variables of custom_pypto. Single plugins and the simulator have others.

The one table that ``custom-pypto doctor`` and the documentation derive from.
"""

from __future__ import annotations

PLUGINS = "CUSTOM_PYPTO_PLUGINS"
DISABLE = "CUSTOM_PYPTO_DISABLE"
STRICT = "CUSTOM_PYPTO_STRICT"
LOCKFILE = "CUSTOM_PYPTO_LOCKFILE"
LOG = "CUSTOM_PYPTO_LOG"
RECORD = "CUSTOM_PYPTO_RECORD"
# C++ names these four itself: current_isa.h, npu/torch_npu.h.
CPU_ISA = "CUSTOM_PYPTO_CPU_ISA"
NPU_ALLOCATION = "CUSTOM_PYPTO_NPU_ALLOCATION"
NPU_EXECUTOR_CACHE = "CUSTOM_PYPTO_NPU_EXECUTOR_CACHE"
NPU_HEADERS = "CUSTOM_PYPTO_NPU_HEADERS"
BUILD_CHECK = "CUSTOM_PYPTO_BUILD_CHECK"
TORCH_DIR = "CUSTOM_PYPTO_TORCH_DIR"
PLATFORM = "CUSTOM_PYPTO_PLATFORM"

GROUPS = {
    "Which plugins load": {
        PLUGINS: "names of plugins, separated by commas: only these load; set but empty: none;"
        " unset: all",
        DISABLE: f"names of plugins, separated by commas: these do not load, whatever `{PLUGINS}`"
        " says",
        STRICT: "`1`: importing core raises `PluginError` when a plugin is rejected or fails, and"
        " loads none",
        LOCKFILE: "the path of a [lock file](discovery.md#the-lock-file): only the plugins in it"
        " load, if they are what it says",
    },
    "Calls of ops": {
        LOG: "[logs each call](debugging.md#the-log-of-calls): `1`: to standard error; a path: to"
        " the end of that file; `0`: off",
        RECORD: "[keeps the arguments of each call](debugging.md#the-record-of-calls) in this file;"
        " if it is a folder, tensors, too; `0`: off",
    },
    "Kernels": {
        CPU_ISA: "forces the [instruction set of CPU kernels](building.md#instruction-sets), such"
        " as `avx2`; unset: the best that the machine has",
        NPU_ALLOCATION: "`1`: [results of launches are allocated faster](launches.md#switches)",
        NPU_EXECUTOR_CACHE: "`1`: launches use [CANN's executor cache](launches.md#switches)",
        NPU_HEADERS: "`0`: launches are not compared with [headers of"
        " kernels](launches.md#headers-of-kernels)",
    },
    "Builds": {
        BUILD_CHECK: "`0`: [core does not import the result](building.md#what-the-build-refuses)"
        " at the end",
        TORCH_DIR: "the folder of the package `torch` to compile against, instead of the installed"
        " one",
        PLATFORM: "the tag of the systems that the wheel is for, such as `manylinux_2_28_aarch64`;"
        " [publishing.md](publishing.md#older-systems-and-other-processors)",
    },
}
"""What each variable means, by what reads it. Links are relative to docs/."""

KNOWN = tuple(name for group in GROUPS.values() for name in group)

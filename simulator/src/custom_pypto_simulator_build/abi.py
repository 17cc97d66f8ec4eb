"""The ABI between the simulator and libraries of simulated kernels."""

from __future__ import annotations

from .compiler import digest, headers
from .installed import simulator_folder, version


def abi() -> str:
    """The ABI as text: the version of torch, and a hash of the simulator's headers."""
    included = digest(headers(simulator_folder() / "include"))
    return f"torch {version('torch')}, simulator headers {included[:12]}"


def abi_flag() -> str:
    """The compiler flag that records it in a library, see abi.h."""
    return f'-DCUSTOM_PYPTO_SIM_ABI="{abi()}"'

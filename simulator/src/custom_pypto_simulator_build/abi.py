"""What a library of simulated kernels and the simulator must agree on."""

from __future__ import annotations

from .compiler import digest, headers
from .installed import simulator_folder, version


def abi() -> str:
    """Names it: the version of torch, and the simulator's headers."""
    included = digest(headers(simulator_folder() / "include"))
    return f"torch {version('torch')}, simulator headers {included[:12]}"


def abi_flag() -> str:
    """The compiler flag that puts it into a library, see abi.h."""
    return f'-DCUSTOM_PYPTO_SIM_ABI="{abi()}"'

"""What ops build on: the NPU, CANN, torch_npu and its own add."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from custom_pypto_contract.abi import TORCH_TARGET

from .finding import Finding

_MODULES = ("CANN", "RUNTIME", "OPP", "OPP_KERNEL", "DRIVER")
"""The names of parts of CANN, as torch_npu has them."""
_DRIVER = Path("/usr/local/Ascend/driver/version.info")
_UNKNOWN = "not known"


def describe_npus() -> dict[str, str]:
    """Return the NPUs, and the versions of CANN and of the driver.

    Raises:
        AssertionError: torch_npu finds no NPU.
    """
    import torch_npu
    from torch_npu.npu import utils

    npu: Any = torch_npu.npu
    if not npu.is_available():
        raise AssertionError("torch_npu finds none")
    facts: dict[str, Callable[[], object]] = {
        "NPUs": npu.device_count,
        "name": lambda: npu.get_device_name(0),
        "bytes": lambda: npu.get_device_properties(0).total_memory,
    }
    for module in _MODULES:
        facts[f"version of {module}"] = partial(utils.get_cann_version, module)
    facts[str(_DRIVER)] = lambda: "; ".join(_DRIVER.read_text("utf-8").split())
    return {name: _value(read) for name, read in facts.items()}


def check_versions() -> Finding:
    """torch and torch_npu are of one release, and new enough."""
    import torch_npu

    versions = {"torch": torch.__version__, "torch_npu": torch_npu.__version__}
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    numbers = [tuple(map(int, each.split(".")[:2])) for each in versions.values()]
    if numbers[0] != numbers[1]:
        return Finding(text, f"{text}: both must have the same major and minor version")
    if numbers[0] < TORCH_TARGET:
        oldest = ".".join(map(str, TORCH_TARGET))
        return Finding(text, f"{text}: ops are built for torch {oldest} and newer")
    return Finding(text)


def check_add(device: str) -> Finding:
    """torch's own add is right on the device."""
    number = torch.arange(1000.0, device=device)
    total = (number + number).cpu()
    is_right = total.equal(2 * torch.arange(1000.0, device="cpu"))
    problem = "" if is_right else f"x + x is {total[:4].tolist()} ... for x = [0, 1, 2, 3 ...]"
    return Finding("x + x of 1000 numbers", problem)


def _value(read: Callable[[], object]) -> str:
    try:
        return str(read()) or _UNKNOWN
    except Exception as error:
        # A fact that cannot be read must not hide the others.
        return f"{_UNKNOWN}: {type(error).__name__}: {error}"

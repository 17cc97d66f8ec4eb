"""Fault injection, delays, counts and checks, for tests."""

from __future__ import annotations

import ctypes
import functools


def fail(name: str, nth: int = 1) -> None:
    """Makes the ``nth`` call of the function ``name`` of CANN from now on fail, once.

    Those are: ``aclrtMalloc*``, the phases of an op ("aclnnAddGetWorkspaceSize", "aclnnAdd"), and
    what aclnn objects, arenas, CANN's cache, the limits of cores and the options of a context are
    made, asked for and destroyed with. "run:aclnnAdd" is the op itself, on its stream, which shows
    at the next synchronisation. Each call replaces the one before. Raises ValueError.
    """
    if nth < 1:
        raise ValueError(f"nth must be at least 1, got {nth}")
    _acl().custom_pypto_sim_fail(name.encode(), nth)


def disarm() -> bool:
    """Cancels ``fail``; returns whether the fault was still pending."""
    return bool(_acl().custom_pypto_sim_fail(b"", 0))


def lose_device(device: int = 0) -> None:
    """Loses a device for ever: it takes no work, gives no memory, and synchronisations fail."""
    _acl().custom_pypto_sim_lose_device(device)


def phase_1_calls() -> int:
    """The number of calls of phase 1 of any op in this process."""
    return int(_acl().custom_pypto_sim_phase_1_calls())


def delay(op: str, seconds: float) -> None:
    """Delays each run of aclnn op ``op`` ("*": every op) by ``seconds``; 0 removes the delay.

    "launch:aclnnAdd" delays the thread that launches the op instead. Raises ValueError.
    """
    if seconds < 0:
        raise ValueError(f"seconds must not be negative, got {seconds}")
    _acl().custom_pypto_sim_set_delay(op.encode(), seconds)


def live_objects() -> dict[str, int]:
    """The number of live objects by kind: "tensor", "executor", "device memory", ..."""
    text = _acl().custom_pypto_sim_live().decode()
    return {kind: int(count) for kind, count in (line.split("=") for line in text.splitlines())}


def damage() -> str:
    """Writes outside live allocations, a line each; empty when there were none.

    torch_npu allocates segments that hold many tensors. With PYTORCH_NO_NPU_MEMORY_CACHING=1 each
    tensor is an allocation of its own, so that the bytes next to it are watched.
    """
    return str(_acl().custom_pypto_sim_damage().decode())


def drain() -> None:
    """Waits for every stream; asynchronous errors are left for torch_npu to report."""
    _acl().custom_pypto_sim_drain()


@functools.cache
def _acl() -> ctypes.CDLL:
    acl = ctypes.CDLL("libascendcl.so")
    acl.custom_pypto_sim_fail.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    acl.custom_pypto_sim_fail.restype = ctypes.c_bool
    acl.custom_pypto_sim_phase_1_calls.restype = ctypes.c_uint64
    acl.custom_pypto_sim_set_delay.argtypes = [ctypes.c_char_p, ctypes.c_double]
    acl.custom_pypto_sim_live.restype = ctypes.c_char_p
    acl.custom_pypto_sim_damage.restype = ctypes.c_char_p
    return acl

"""Launches aclnn ops by hand, through torch_npu's search and stream, with ctypes."""

import ctypes
from typing import Any

import torch


def expect_success(phase: int, code: int) -> None:
    """Raises RuntimeError with the phase, the code and the recent error, unless it is 0."""
    if code != 0:
        acl = ctypes.CDLL("libascendcl.so")
        acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        text = (acl.aclGetRecentErrMsg() or b"").decode()
        raise RuntimeError(f"phase {phase}: {code}: {text}")


def function(name: str, result: Any = ctypes.c_int) -> Any:
    """A function of an opp package or of CANN, as torch_npu finds it."""
    find = ctypes.CDLL("libtorch_npu.so")._Z16GetOpApiFuncAddrPKc
    find.restype = ctypes.c_void_p
    found = find(name.encode())
    assert found, f"{name} was not found"
    return ctypes.CFUNCTYPE(result)(found)


def tensor(value: torch.Tensor) -> ctypes.c_void_p:
    """An aclTensor for a tensor of float32 on an npu."""

    def sizes(values: Any) -> Any:
        return (ctypes.c_int64 * len(values))(*map(int, values))

    storage = [value.untyped_storage().nbytes() // value.element_size()]
    created = function("aclCreateTensor", ctypes.c_void_p)(
        sizes(value.shape),
        ctypes.c_uint64(value.dim()),
        ctypes.c_int(0),
        sizes(value.stride()),
        ctypes.c_int64(int(value.storage_offset())),
        ctypes.c_int(2),
        sizes(storage),
        ctypes.c_uint64(1),
        ctypes.c_void_p(value.untyped_storage().data_ptr()),
    )
    expect_success(0, int(not created))
    return ctypes.c_void_p(created)


def destroy(*tensors: ctypes.c_void_p) -> None:
    for each in tensors:
        assert function("aclDestroyTensor")(each) == 0


def phase_1(name: str, *arguments: Any) -> tuple[ctypes.c_void_p, ctypes.c_uint64]:
    """The executor of an op, and the bytes of workspace that it needs. Raises RuntimeError."""
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    prepare = function(f"{name}GetWorkspaceSize")
    expect_success(1, prepare(*arguments, ctypes.byref(size), ctypes.byref(executor)))
    return executor, size


def phase_2(
    name: str,
    executor: ctypes.c_void_p,
    size: ctypes.c_uint64,
    workspace: ctypes.c_void_p | None = None,
) -> None:
    """Runs an executor on the current stream. Raises RuntimeError."""
    memory = torch.empty(size.value, dtype=torch.uint8, device="npu")
    stream = torch.npu.current_stream().npu_stream  # type: ignore[attr-defined]
    place = workspace or ctypes.c_void_p(memory.data_ptr())
    expect_success(2, function(name)(place, size, executor, ctypes.c_void_p(stream)))


def launch(name: str, *arguments: Any) -> None:
    """Both phases of an op, on the current stream. Raises RuntimeError."""
    phase_2(name, *phase_1(name, *arguments))


def launch_tensors(name: str, *tensors: torch.Tensor) -> None:
    """Launches an op that takes tensors only, and destroys what it made."""
    made = [*map(tensor, tensors)]
    try:
        launch(name, *made)
    finally:
        destroy(*made)

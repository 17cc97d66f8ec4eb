"""The tile's products of int8 numbers, at every instruction set of the machine."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from cpp_library import INCLUDE, SOURCES, compile_command, run
from custom_pypto_build import instruction_sets
from custom_pypto_contract import platforms
from torch import Tensor

ISAS = instruction_sets.of_machine(INCLUDE, platforms.machine(platforms.platform_tag()), int8=True)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ctypes.CDLL]:
    """The library of each instruction set that the machine has; all are compiled."""
    folder = tmp_path_factory.mktemp("int8_tile")

    def compile_one(name: str, source: str, *flags: str) -> ctypes.CDLL:
        path = folder / f"{name}.so"
        run(compile_command("-shared", SOURCES / f"{source}.cpp", "-o", path, *flags))
        return ctypes.CDLL(str(path))

    machine = compile_one("machine", "machine_isas")
    with ThreadPoolExecutor() as pool:
        compiled = pool.map(lambda isa: compile_one(isa, "int8_tile", *ISAS[isa]), ISAS)
        return {
            isa: library
            for isa, library in zip(ISAS, compiled, strict=True)
            if machine.machine_has(isa.encode())
        }


def multiply(library: ctypes.CDLL, a: Tensor, b: Tensor) -> Tensor:
    """a [rows, depth], whose last dimension may have any stride, times b [columns, depth]."""
    b = b.contiguous()
    out = torch.empty(len(b), len(a), dtype=torch.int32)
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    library.multiply(
        *(pointer(a.data_ptr()), size(len(a)), size(a.stride(1))),
        *(pointer(b.data_ptr()), size(len(b)), size(a.shape[1]), pointer(out.data_ptr())),
    )
    return out.T


def check(libraries: dict[str, ctypes.CDLL], a: Tensor, b: Tensor) -> None:
    """Exactly the product, at each instruction set."""
    expected = (a.long() @ b.long().T).int()
    for isa, library in libraries.items():
        assert multiply(library, a, b).equal(expected), isa


def numbers(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 16, 63, 128])
@pytest.mark.parametrize("columns", [1, 7, 16, 33])
def test_products_are_exact(libraries: dict[str, ctypes.CDLL], columns: int, depth: int) -> None:
    check(libraries, numbers(3, depth), numbers(columns, depth))


def test_rows_may_have_any_stride(libraries: dict[str, ctypes.CDLL]) -> None:
    check(libraries, numbers(2, 90)[:, ::2], numbers(5, 45))


@pytest.mark.parametrize("a", [-128, 127])
@pytest.mark.parametrize("b", [-128, 127])
def test_the_largest_sums_do_not_saturate(
    libraries: dict[str, ctypes.CDLL], a: int, b: int
) -> None:
    depth = 2**17 - 1
    rows, lanes = (torch.full((1, depth), x, dtype=torch.int8) for x in (a, b))
    check(libraries, rows, lanes)

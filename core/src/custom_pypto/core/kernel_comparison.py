"""What a plugin passes to kernels for NPUs, compared with the kernels that this machine has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from custom_pypto_contract import elf
from custom_pypto_contract.aclnn_launch import Launch, make_launch
from custom_pypto_contract.elf import ElfError

from custom_pypto.core import kernel_queries
from custom_pypto.core.kernel_headers import compare
from custom_pypto.core.kernel_queries import NpuKernelRecord

_NPU_LAUNCHES = "custom_pypto_npu_launches_v1"


@dataclass(frozen=True, slots=True)
class NpuLaunches:
    """What a plugin's library passes to kernels that it launches by name."""

    launches: tuple[Launch, ...]
    packages: tuple[Path, ...]
    """The libraries of opp packages, in the order of the search, also of those not there."""


def find_kernels(library: Path) -> tuple[NpuKernelRecord, ...]:
    """Return what the library would launch on an NPU, compared; see `query_npu_kernels`.

    Raises:
        PluginError: the library cannot report them.
    """
    known = query_npu_launches(library)
    found = kernel_queries.query_npu_kernels(library)
    return tuple(_compared(record, known, library) for record in found)


def query_npu_launches(library: Path) -> NpuLaunches:
    """Return what the library passes to kernels, and where it would look for them; opens none.

    Raises:
        PluginError: the library cannot report it.
    """
    launches: list[dict[str, str]] = []
    packages = []
    for field, value in kernel_queries.query(library, _NPU_LAUNCHES):
        if field == "package":
            packages.append(Path(value))
        elif field == "launch":
            launches.append({})
            launches[-1]["symbol"] = value
        else:
            launches[-1][field] = value
    return NpuLaunches(tuple(make_launch(**each) for each in launches), tuple(packages))


def _compared(record: NpuKernelRecord, known: NpuLaunches, plugin: Path) -> NpuKernelRecord:
    """Add to a record what the header of its kernel says, and whom it shadows."""
    if record.library is None or not record.symbol.startswith("aclnn"):
        return record
    launches = [each for each in known.launches if each.symbol == record.symbol]
    compared = [compare(each, plugin, record.library) for each in launches]
    unchecked = (
        f"its launch has no name in the C++ source; CUSTOM_PYPTO_LAUNCH(kernel, {record.symbol},"
        " ...) has one. It is compared before it first runs"
    )
    return replace(
        record,
        mismatch="\n".join(dict.fromkeys(filter(None, (each.mismatch for each in compared)))),
        unchecked=compared[0].unchecked if compared else unchecked,
        shadowed=tuple(
            package
            for package in _behind(record.library, known.packages)
            if _exports(package, record.symbol)
        ),
    )


def _behind(first: Path, packages: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the libraries that are searched after `first`, which are there and are others."""
    there = [each for each in packages if each.is_file()]
    same = [each.samefile(first) for each in there]
    if any(same):
        yield from (each for each in there[same.index(True) :] if not each.samefile(first))


def _exports(library: Path, symbol: str) -> bool:
    try:
        return symbol in elf.read(library.read_bytes()).exported
    except (ElfError, OSError):
        return False

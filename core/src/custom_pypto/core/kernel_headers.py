"""Compares what a plugin's launches pass with the headers of the kernels, ``aclnn_*.h``.

An opp package has them in ``op_api/include``, beside the ``lib`` of its library; CANN in
``include/aclnnop``, beside ``lib64``. A header decides nothing if somebody else could change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from custom_pypto_contract import abi, aclnn_header, small_file
from custom_pypto_contract.aclnn_launch import Launch, find_differences, make_launch, plain
from custom_pypto_discovery import ownership
from custom_pypto_discovery.host import this_host
from custom_pypto_discovery.printable import escape_lines

from custom_pypto.core import kernel_queries
from custom_pypto.core.kernel_queries import NpuKernelRecord

_MOST_HEADERS = 4096
_MOST_BYTES = 1 << 20


def compare(launch: Launch, plugin: Path, kernels: Path) -> tuple[str, str]:
    """Compare a launch by the library `plugin` with the headers of the library `kernels`.

    Where headers declare a kernel several times, as for versions of CANN, one must fit. Returns
    what a header declares otherwise, with both files (`REMEDY` of aclnn_launch is for it), and why
    there is nothing to compare with. Both are empty if the launch is right.
    """
    folder = _folder(kernels)
    first = ""
    refused = ""
    for header in islice(_headers(folder, launch.symbol), _MOST_HEADERS):
        try:
            text = small_file.read(header, _MOST_BYTES)
            if f"{launch.symbol}GetWorkspaceSize" not in text:
                continue
            fault = ownership.find_fault_of_file(header, this_host().trusted_owners)
        except OSError as error:
            fault = f"{header} {error}"
        if fault:
            refused = refused or fault
            continue
        for each in aclnn_header.parse(text):
            if each.name != launch.symbol or each.arguments is None:
                continue
            differences = find_differences(launch, each.arguments)
            if not differences:
                return "", ""
            first = first or _explain(launch, differences, f"{header}:{each.line}", plugin)
    if first:
        return first, ""
    return "", refused or f"no header in {folder} declares {launch.symbol}"


def _folder(kernels: Path) -> Path:
    """Return the folder of the headers of a library."""
    folder = kernels.parent.parent / "include"
    return folder if folder.is_dir() else kernels.resolve().parent.parent / "include"


def _headers(folder: Path, symbol: str) -> Iterator[Path]:
    """Yield the headers, those named for the kernel first."""
    found = sorted(chain(folder.glob("aclnn_*.h"), folder.glob("aclnnop/**/aclnn_*.h")))
    named = plain(symbol)
    yield from sorted(found, key=lambda header: plain(header.stem) != named)


def _explain(launch: Launch, differences: list[str], header: str, plugin: Path) -> str:
    return escape_lines(
        f"{launch.symbol} is launched with other arguments than its header declares:\n"
        + "".join(f"  {each}\n" for each in differences)
        + f"  the header is {header}\n"
        f"  the plugin is {plugin}"
    )


def find_kernels(library: Path) -> tuple[NpuKernelRecord, ...]:
    """Return what the library would launch on an NPU, compared; see `query_npu_kernels`.

    Raises:
        PluginError: the library cannot report them.
    """
    launches, _ = query_npu_launches(library)
    found = kernel_queries.query_npu_kernels(library)
    return tuple(_compared(record, launches, library) for record in found)


def query_npu_launches(library: Path) -> tuple[list[Launch], list[Path]]:
    """Return what the library passes to kernels, and where it would look for them; opens none.

    Those places are the libraries of opp packages, in the order of the search, there or not.

    Raises:
        PluginError: the library cannot report it.
    """
    launches: list[dict[str, str]] = []
    packages: list[Path] = []
    for field, value in kernel_queries.query(library, abi.NPU_LAUNCHES):
        if field == "package":
            packages.append(Path(value))
        elif field == "launch":
            launches.append({"symbol": value})
        else:
            launches[-1][field] = value
    return [make_launch(**each) for each in launches], packages


def _compared(record: NpuKernelRecord, launches: list[Launch], plugin: Path) -> NpuKernelRecord:
    """Add to a record what the header of its kernel says."""
    if record.library is None or not record.symbol.startswith("aclnn"):
        return record
    own = (each for each in launches if each.symbol == record.symbol)
    compared = [compare(each, plugin, record.library) for each in own]
    unchecked = (
        f"its launch has no name in the C++ source; CUSTOM_PYPTO_LAUNCH(kernel, {record.symbol},"
        " ...) has one. It is compared before it first runs"
    )
    return replace(
        record,
        mismatch="\n".join(dict.fromkeys(filter(None, (mismatch for mismatch, _ in compared)))),
        unchecked=compared[0][1] if compared else unchecked,
    )

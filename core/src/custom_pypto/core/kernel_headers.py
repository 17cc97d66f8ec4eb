"""Compares what a plugin's launches pass with the headers of the kernels, ``aclnn_*.h``.

An opp package has them in ``op_api/include``, beside the ``lib`` of its library; CANN in
``include/aclnnop``, beside ``lib64``. A header decides nothing if somebody else could change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from custom_pypto_contract import aclnn_header, small_file
from custom_pypto_contract.aclnn_launch import Launch, find_differences, plain
from custom_pypto_discovery import ownership
from custom_pypto_discovery.host import this_host
from custom_pypto_discovery.printable import escape_lines

_MOST_HEADERS = 4096
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Comparison:
    """What a header says of a launch. Without both texts, the launch is right."""

    mismatch: str = ""
    """What the header declares otherwise, with both files; `REMEDY` of aclnn_launch is for it."""
    unchecked: str = ""
    """Why there is nothing to compare with."""


def compare(launch: Launch, plugin: Path, kernels: Path) -> Comparison:
    """Compare a launch by the library `plugin` with the headers of the library `kernels`.

    Where headers declare a kernel several times, as for versions of CANN, one must fit.
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
                return Comparison()
            first = first or _explain(launch, differences, f"{header}:{each.line}", plugin)
    if first:
        return Comparison(mismatch=first)
    return Comparison(unchecked=refused or f"no header in {folder} declares {launch.symbol}")


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

"""The functions looked up in libtorch_npu.so: documented, and in the installed library.

Other versions of torch_npu are for tests/symbols, which downloads them.
"""

from __future__ import annotations

import re
from pathlib import Path

from libtorch_npu import exported, looked_up, package

DOCUMENT = (Path(__file__).parents[2] / "docs" / "npu.md").read_text("utf-8")


def readable(symbol: str) -> str:
    """The qualified name of a mangled function: lengths and names, before the parameters."""
    names, rest = [], symbol.removeprefix("_ZN").removeprefix("_Z")
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
        if not symbol.startswith("_ZN"):
            break
    return "::".join(names)


def test_the_documentation_lists_the_functions_that_the_headers_look_up() -> None:
    (section,) = re.findall(r"## What a launch uses of torch_npu\n(.*?)\n## ", DOCUMENT, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(listed) == sorted(map(readable, looked_up()))


def test_the_installed_torch_npu_has_every_function() -> None:
    missing = looked_up() - exported(package("torch_npu") / "lib" / "libtorch_npu.so")
    assert not missing, f"torch_npu has no {sorted(missing)}"

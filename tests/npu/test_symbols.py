"""What is looked up in libtorch_npu.so is in every torch_npu that we name as supported.

The published wheels are downloaded and read, never imported.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

DOCUMENT = (Path(__file__).parents[2] / "docs" / "npu.md").read_text("utf-8")
SUPPORTED = ("2.10", "2.11", "2.12", "2.13", "2.14")
SYMBOL = re.compile(r'"(_Z\w+)"')
BREAK = re.compile(r'"\s+"')
"""Between the parts of a literal that is longer than a line."""


def symbols() -> set[str]:
    """The mangled names in core's headers, as they are installed."""
    package = importlib.util.find_spec("custom_pypto")
    assert package is not None
    folder = next(iter(package.submodule_search_locations or ()))
    headers = Path(folder, "core", "include", "custom_pypto", "npu").glob("*.h")
    texts = [BREAK.sub("", header.read_text("utf-8")) for header in headers]
    return {name for text in texts for name in SYMBOL.findall(text)}


def published(version: str, folder: Path) -> Path:
    """libtorch_npu.so of the newest wheel of a version."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    done = subprocess.run(
        [*pip, f"torch_npu=={version}.*"], capture_output=True, text=True, check=False
    )
    if "No matching distribution found" in done.stderr:
        pytest.skip(f"the package index has no torch_npu {version} for this Python")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("torch_npu/lib/libtorch_npu.so", folder))


def exported(library: Path) -> set[str]:
    """The names that a library defines for others, as binutils' nm lists them."""
    command = ["nm", "--dynamic", "--defined-only", "--format=just-symbols", str(library)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.partition("@")[0] for line in listed.splitlines()}


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
    (section,) = re.findall(r"## What is needed of torch_npu\n(.*?)\n## ", DOCUMENT, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(listed) == sorted(map(readable, symbols()))


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_published_wheel_has_every_function(version: str, tmp_path: Path) -> None:
    library = published(version, tmp_path)
    assert symbols() <= exported(library)

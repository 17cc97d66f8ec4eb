"""What is looked up in libtorch_npu.so is in every torch_npu that we name as supported.

The published wheels are downloaded and read, never imported.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from custom_pypto_build.elf import Elf

SUPPORTED = ("2.10", "2.11", "2.12", "2.13", "2.14")
SYMBOL = re.compile(r'"(_Z\w+)"')
BREAK = re.compile(r'"\s+"')
"""Between the parts of a literal that is longer than a line."""


def symbols() -> set[str]:
    """The mangled names in core's headers, as they are installed."""
    files = importlib.metadata.files("custom-pypto-core") or []
    headers = [Path(str(file.locate())) for file in files if file.match("npu/*.h")]
    texts = [BREAK.sub("", header.read_text("utf-8")) for header in headers]
    return {name for text in texts for name in SYMBOL.findall(text)}


def published(version: str, folder: Path) -> Path:
    """libtorch_npu.so of the newest wheel of a version."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, f"torch_npu=={version}.*"], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("torch_npu/lib/libtorch_npu.so", folder))


def test_the_headers_name_the_functions_that_a_launch_uses() -> None:
    assert len(symbols()) == 12


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_published_wheel_has_every_function(version: str, tmp_path: Path) -> None:
    library = published(version, tmp_path)
    assert symbols() <= Elf(library).exports()

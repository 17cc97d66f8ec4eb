"""The installed files are those of the wheels that are tested without torch_npu, byte for byte."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import zipfile
from pathlib import Path, PurePosixPath

import pytest

WHEELS = sorted(Path(os.environ["CUSTOM_PYPTO_WHEELS"]).glob("*.whl"))
"""The wheels that the environment `tests` installs, and the simulator's."""


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name.split("-")[0])
def test_every_file_is_the_one_in_the_wheel(wheel: Path) -> None:
    distribution = importlib.metadata.distribution(wheel.name.split("-")[0])
    with zipfile.ZipFile(wheel) as archive:
        # pip writes its own RECORD.
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        assert names
        for name in names:
            installed = Path(str(distribution.locate_file(name)))
            assert installed.read_bytes() == archive.read(name), name


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name.split("-")[0])
def test_the_library_is_the_one_that_the_manifest_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith("/custom_pypto_plugin.json"):
                library = json.loads(archive.read(name))["library"]
                content = archive.read(str(PurePosixPath(name).parent / library["path"]))
                assert hashlib.sha256(content).hexdigest() == library["sha256"]

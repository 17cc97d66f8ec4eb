"""What is installed here is what is installed for the CPU: the same wheel files, byte for byte."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import zipfile
from pathlib import Path

import pytest

DISTRIBUTIONS = (
    "custom_pypto_core",
    "custom_pypto_add_custom",
    "custom_pypto_lightning_indexer",
    "custom_pypto_sparse_attention",
)


@pytest.fixture(params=DISTRIBUTIONS)
def wheel(request: pytest.FixtureRequest) -> Path:
    """The wheel that the `tests` environment, which has no torch_npu, is tested with."""
    (found,) = Path(os.environ["CUSTOM_PYPTO_WHEELS"]).glob(f"{request.param}-*.whl")
    return found


def test_every_file_is_the_one_in_the_wheel(wheel: Path) -> None:
    distribution = importlib.metadata.distribution(wheel.name.split("-")[0])
    with zipfile.ZipFile(wheel) as archive:
        # pip writes its own RECORD.
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        assert names
        for name in names:
            installed = Path(str(distribution.locate_file(name)))
            assert installed.read_bytes() == archive.read(name), name


def test_the_library_is_the_one_that_the_manifest_names(wheel: Path) -> None:
    distribution = importlib.metadata.distribution(wheel.name.split("-")[0])
    manifests = [
        Path(str(file.locate()))
        for file in distribution.files or ()
        if file.name == "custom_pypto_plugin.json"
    ]
    assert bool(manifests) == ("core" not in wheel.name)
    for manifest in manifests:
        library = json.loads(manifest.read_text(encoding="utf-8"))["library"]
        content = (manifest.parent / library["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == library["sha256"]
        with zipfile.ZipFile(wheel) as archive:
            assert archive.read(f"{manifest.parent.name}/{library['path']}") == content

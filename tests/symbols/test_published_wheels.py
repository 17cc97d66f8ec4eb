"""Every supported torch_npu has the functions that core's headers look up.

The tests download the published wheels, 40 MB each: `tox -e wheels,symbols`.
"""

import zipfile
from pathlib import Path

import pytest
from custom_pypto_contract.abi import TORCH_NPU
from libtorch_npu import exported, looked_up
from programs import run_python

# The library is the same for every Python: this one has wheels of all these versions.
FOR = ("--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311")


def published(version: str, folder: Path) -> Path:
    """libtorch_npu.so of the newest wheel of a version."""
    options = ("--quiet", "--no-deps", *FOR, "--dest", folder)
    run_python("-m", "pip", "download", *options, f"torch_npu=={version}.*")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract("torch_npu/lib/libtorch_npu.so", folder))


@pytest.mark.parametrize("version", TORCH_NPU)
def test_the_published_wheel_has_every_function(version: str, tmp_path: Path) -> None:
    missing = looked_up() - exported(published(version, tmp_path))
    assert not missing, f"torch_npu {version} has no {sorted(missing)}"

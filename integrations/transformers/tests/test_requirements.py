"""One sentence names a missing requirement and says what to install."""

import importlib.metadata
import sys
from pathlib import Path

import pytest
from custom_pypto_transformers import requirements

OLD = "transformers {} is too old, 5.15.1 is the first with the models that are served: "


@pytest.mark.parametrize(
    ("version", "message"),
    [
        *((version, OLD.format(version)) for version in ("4.57.1", "5.15.0", "5.9")),
        (None, "transformers is not installed: "),
        *((version, None) for version in ("5.15.1", "5.16", "5.20.0.dev0", "5.100.0rc1", "6.0.0")),
    ],
)
def test_a_transformers_that_is_missing_or_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: str | None, message: str | None
) -> None:
    def find(name: str) -> str:
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", find)
    if message is None:
        return requirements.check_requirements()
    with pytest.raises(ImportError) as caught:
        requirements.check_requirements()
    assert str(caught.value) == f"custom_pypto_transformers: {message}{requirements.INSTALL}"
    return None


def test_all_missing_ops_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "OPS", ("npu_no_op", "npu_sparse_flash_mla", "npu_none"))
    with pytest.raises(ImportError, match=r"^custom_pypto_tr.*'npu_no_op'.*; .*'npu_none'"):
        requirements.check_requirements()


def test_a_torch_npu_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch_npu.py").write_text("raise ImportError('libhccl.so: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    with pytest.raises(ImportError, match=r"torch_npu.*libhccl.so: no such file.*set_env.sh"):
        requirements.check_requirements()


def test_the_metadata_and_tox_name_the_versions_of_the_messages() -> None:
    needed = importlib.metadata.requires("custom-pypto-transformers") or []
    assert f"transformers>={requirements.MINIMUM}" in needed
    tox = Path(__file__).parents[3] / "tox.ini"
    assert f"transformers=={requirements.TESTED}" in tox.read_text()

"""What is missing is named in one sentence that says what to install."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from custom_pypto_transformers import requirements


def with_transformers(
    monkeypatch: pytest.MonkeyPatch, version: str | None, torchvision: bool = True
) -> None:
    def find(name: str) -> str:
        assert name == "transformers"
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", find)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: torchvision or None)


@pytest.mark.parametrize("version", ["4.57.1", "5.15.0", "5.9"])
def test_an_old_transformers(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    with_transformers(monkeypatch, version)
    with pytest.raises(ImportError) as caught:
        requirements.check_requirements()
    text = str(caught.value)
    assert text.startswith(f"custom_pypto_transformers: transformers {version} is too old")
    assert text.endswith("pip install 'transformers>=5.15.1'")


@pytest.mark.parametrize("version", ["5.15.1", "5.16", "5.20.0.dev0", "5.100.0rc1", "6.0.0"])
def test_a_transformers_that_is_new_enough(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    with_transformers(monkeypatch, version)
    requirements.check_requirements()


def test_a_transformers_that_cannot_make_models_without_torchvision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_transformers(monkeypatch, "5.20.0", torchvision=False)
    with pytest.raises(ImportError) as caught:
        requirements.check_requirements()
    assert str(caught.value) == (
        "custom_pypto_transformers: transformers 5.20.0 makes no model with registered classes"
        " where torchvision is missing: pip install torchvision, or 'transformers>=5.21.0'"
    )


def test_a_transformers_that_needs_no_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    with_transformers(monkeypatch, "5.21.0", torchvision=False)
    requirements.check_requirements()


def test_no_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    with_transformers(monkeypatch, None)
    with pytest.raises(ImportError) as caught:
        requirements.check_requirements()
    assert str(caught.value) == (
        "custom_pypto_transformers: transformers is not installed:"
        " pip install 'transformers>=5.15.1'"
    )


def imported(without: str) -> str:
    """What an import says in a process in which a plugin is blocked."""
    done = subprocess.run(
        [sys.executable, "-c", "import custom_pypto_transformers"],
        env={**os.environ, "CUSTOM_PYPTO_DISABLE": without},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return done.stderr.rstrip("\n").rpartition("\n")[2]


@pytest.mark.parametrize(
    ("plugin", "wheels"),
    [
        # That of sparse attention needs the other.
        ("lightning_indexer", "custom-pypto-lightning-indexer custom-pypto-sparse-attention"),
        ("sparse_attention", "custom-pypto-sparse-attention"),
    ],
)
def test_ops_that_are_not_there(plugin: str, wheels: str) -> None:
    assert imported(without=plugin) == (
        "ImportError: custom_pypto_transformers: the ops of these wheels are missing; install"
        " them, or see `custom-pypto list` for why they did not load:"
        f" pip install {wheels}"
    )


def test_a_torch_npu_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch_npu.py").write_text("raise ImportError('libhccl.so: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    with pytest.raises(ImportError, match=r"torch_npu.*libhccl.so: no such file.*set_env.sh"):
        requirements.check_requirements()


def test_the_metadata_names_the_version_that_is_checked() -> None:
    needed = importlib.metadata.requires("custom-pypto-transformers") or []
    assert f"transformers>={requirements.MINIMUM}" in needed


def test_a_transformers_of_another_layout_is_named_with_the_one_that_was_tested() -> None:
    code = """
import transformers.models.deepseek_v32.modeling_deepseek_v32 as module
del module.apply_rotary_pos_emb
import custom_pypto_transformers
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: custom_pypto_transformers: transformers ")
    assert "no attribute 'apply_rotary_pos_emb'" in last
    assert f"pip install 'transformers<={requirements.TESTED}'" in last


def test_tox_has_the_transformers_that_the_message_names() -> None:
    tox = Path(__file__).parents[3] / "tox.ini"
    assert f"transformers=={requirements.TESTED}" in tox.read_text()

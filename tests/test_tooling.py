"""The tools of the repository: versions, distributions, the environments of examples."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import distributions
import pytest
from repository import ROOT

from examples import program


@pytest.mark.parametrize("tool", ["ruff", "clang-format"])
def test_pre_commit_uses_the_version_of_tox(tool: str) -> None:
    pin = re.compile(rf"\b{tool}==([\w.]+)")
    hooks = set(pin.findall((ROOT / ".pre-commit-config.yaml").read_text()))
    tox = set(pin.findall((ROOT / "tox.ini").read_text()))
    assert hooks == tox
    assert len(hooks) == 1


def test_distributions_are_found_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new_op", "other"):
        folder = tmp_path / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "acme-{name}"\n')
    monkeypatch.setattr(distributions, "ROOT", tmp_path)
    assert [*distributions.find(["plugins/*"])] == ["acme-new_op", "acme-other"]


def test_examples_change_no_environment_but_a_virtual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(program.ExampleError, match="only runs in a virtual environment"):
        program.build(tmp_path, program.BASE)

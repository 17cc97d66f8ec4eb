"""The import checks the requirements, and the message says what to install."""

import importlib
import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_mindspore import requirements
from programs import run_python


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "mindspore is not installed: pip install 'mindspore>=2.10.0'"),
        ("2.9.1", "mindspore 2.9.1 is too old to share memory: pip install 'mindspore>=2.10.0'"),
    ],
)
def test_a_missing_or_old_mindspore(
    monkeypatch: pytest.MonkeyPatch, version: str | None, message: str
) -> None:
    def find(_: str) -> str:
        if version is None:
            raise importlib.metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(importlib.metadata, "version", find)
    with pytest.raises(ImportError) as caught:
        requirements.check_requirements()
    assert str(caught.value) == f"custom_pypto_mindspore: {message}"


def test_an_unknown_layout_names_the_tested_mindspore() -> None:
    code = "import mindspore.graph.api as api; del api._pynative_executor"
    code += "\nimport custom_pypto_mindspore"
    last = run_python("-c", code, status=1).stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: custom_pypto_mindspore: mindspore ")
    assert "has no attribute '_pynative_executor'" in last
    assert last.endswith("pip install 'mindspore==2.10.0'")


USES = [(module, use) for module, uses in requirements.USED.items() for use in uses.split()]


@pytest.mark.parametrize(("module", "use"), USES, ids=[use for _, use in USES])
def test_what_is_missing_or_takes_other_arguments_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, use: str
) -> None:
    path, is_function, known = use.partition("(")
    owner, _, name = path.rpartition(".")
    holder: Any = importlib.import_module(module)
    if is_function:
        whole = getattr(holder, owner) if owner else holder
        if isinstance(whole, type):
            # MindSpore's own class may be one of C++, whose methods cannot be set.
            whole = type(owner, (whole,), {})
            monkeypatch.setattr(holder, owner, whole)
        requirements.check_layout()
        monkeypatch.setattr(whole, name, lambda other, *more: None)
        message = re.escape(f"{module}.{path} takes (other,more), not ({known}")
        with pytest.raises(ImportError, match=f"^{message}$"):
            requirements.check_layout()
    monkeypatch.delattr(holder, owner or name)
    with pytest.raises(AttributeError, match=owner or name):
        requirements.check_layout()


def test_the_metadata_and_tox_name_the_version_that_is_checked() -> None:
    extra = importlib.metadata.requires("custom-pypto-mindspore") or []
    assert any(each.startswith(f"mindspore>={requirements.MINIMUM}") for each in extra)
    tox = Path(__file__).parents[2] / "tox.ini"
    assert f"mindspore=={requirements.MINIMUM}" in tox.read_text()

"""Calling back when a module has been imported."""

import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from custom_pypto.core.after_import import AfterImport


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path`, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield tmp_path
    sys.meta_path[:] = before
    for name in ("acme_one", "acme_two"):
        sys.modules.pop(name, None)


def write(folder: Path, name: str, code: str = "") -> None:
    (folder / f"{name}.py").write_text(code, encoding="utf-8")


def watch(*names: str) -> list[bool]:
    """Watch for modules; return a list that gets an element at each call back."""
    events: list[bool] = []
    finder = AfterImport(names, lambda: events.append(hasattr(sys.modules["acme_one"], "done")))
    finder.watch()
    finder.watch()
    return events


def test_callback_runs_once_after_the_code_of_any_of_the_modules(folder: Path) -> None:
    write(folder, "acme_one", "done = True")
    write(folder, "acme_two")
    before = list(sys.meta_path)
    events = watch("acme_one", "acme_three")
    importlib.import_module("acme_two")
    assert importlib.util.find_spec("acme_one") is not None
    assert events == []
    assert len(sys.meta_path) == len(before) + 1
    module = importlib.import_module("acme_one")
    importlib.import_module("acme_one")
    assert events == [True]
    # Nothing is left in the import system.
    assert sys.meta_path == before
    spec = module.__spec__
    assert isinstance(spec, ModuleSpec)
    assert spec.origin == str(folder / "acme_one.py")
    assert type(spec.loader).__name__ == "SourceFileLoader"
    assert module.__loader__ is spec.loader


def test_callback_waits_for_an_import_that_succeeds(folder: Path) -> None:
    once = "from acme_two import tries\ntries.append(1)\nif len(tries) == 1: raise LookupError\n"
    write(folder, "acme_one", f"{once}done = True\n")
    write(folder, "acme_two", "tries = []")
    events = watch("acme_one")
    with pytest.raises(LookupError):
        importlib.import_module("acme_one")
    assert events == []
    importlib.import_module("acme_one")
    assert events == [True]

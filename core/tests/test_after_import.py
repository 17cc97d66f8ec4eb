"""Acting when an import has ended."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from custom_pypto.core.after_import import AfterImport, is_being_imported, when_imported


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


def test_imported_module_is_not_being_imported(folder: Path) -> None:
    write(folder, "acme_one")
    assert not is_being_imported(importlib.import_module("acme_one"))


def test_module_is_being_imported_while_its_code_runs(folder: Path) -> None:
    write(
        folder,
        "acme_one",
        "import sys\nfrom custom_pypto.core.after_import import is_being_imported\n"
        "state = is_being_imported(sys.modules[__name__])",
    )
    assert importlib.import_module("acme_one").state


def test_module_without_spec_is_not_being_imported() -> None:
    assert not is_being_imported(ModuleType("made_by_hand"))


def test_act_runs_after_the_code_of_the_module(folder: Path) -> None:
    write(
        folder,
        "acme_one",
        "import sys\nfrom custom_pypto.core.after_import import when_imported\n"
        "events = []\n"
        "when_imported(sys.modules[__name__], lambda: events.append('act'))\n"
        "when_imported(sys.modules[__name__], lambda: events.append('second act'))\n"
        "events.append('code')",
    )
    assert importlib.import_module("acme_one").events == ["code", "act", "second act"]


def test_module_is_marked_as_imported_when_the_act_runs(folder: Path) -> None:
    write(
        folder,
        "acme_one",
        "import sys\nfrom custom_pypto.core import after_import\n"
        "me, states = sys.modules[__name__], []\n"
        "after_import.when_imported(me, lambda: states.append(after_import.is_being_imported(me)))",
    )
    assert importlib.import_module("acme_one").states == [False]


def test_act_runs_when_the_import_fails(folder: Path) -> None:
    write(
        folder,
        "acme_one",
        "import sys\nfrom custom_pypto.core.after_import import when_imported\n"
        "from acme_two import events\n"
        "when_imported(sys.modules[__name__], lambda: events.append('act'))\n"
        "raise LookupError",
    )
    write(folder, "acme_two", "events = []")
    with pytest.raises(LookupError):
        importlib.import_module("acme_one")
    assert importlib.import_module("acme_two").events == ["act"]


def test_spec_of_a_class_of_its_own_is_left_alone() -> None:
    class TracedSpec(ModuleSpec):
        pass

    module = ModuleType("made_by_hand")
    module.__spec__ = TracedSpec("made_by_hand", None)
    when_imported(module, lambda: None)
    assert type(module.__spec__) is TracedSpec


def test_watch_acts_once_after_the_import_of_one_of_the_names(folder: Path) -> None:
    write(folder, "acme_one", "")
    write(folder, "acme_two", "")
    events: list[bool] = []
    watch = AfterImport(
        ["acme_one", "acme_three"], lambda: events.append("acme_one" in sys.modules)
    )
    watch.watch()
    importlib.import_module("acme_two")
    assert events == []
    importlib.import_module("acme_one")
    importlib.import_module("acme_one")
    assert events == [True]


def test_watch_that_was_begun_twice_is_in_the_import_system_once(folder: Path) -> None:
    watch = AfterImport(["acme_one"], lambda: None)
    watch.watch()
    watch.watch()
    assert sys.meta_path.count(watch) == 1


def test_watched_module_keeps_its_loader_and_origin(folder: Path) -> None:
    write(folder, "acme_one")
    AfterImport(["acme_one"], lambda: None).watch()
    spec = importlib.import_module("acme_one").__spec__
    assert spec is not None
    assert isinstance(spec, ModuleSpec)
    assert spec.origin == str(folder / "acme_one.py")
    assert type(spec.loader).__name__ == "SourceFileLoader"

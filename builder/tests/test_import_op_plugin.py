"""custom-pypto import --op-plugin: the choice of functions, and what is no such file."""

from __future__ import annotations

import sys

import pytest
from custom_pypto_build.importing import op_plugin
from custom_pypto_build.importing.model import ImportingError


def test_func_chooses_all_overloads_or_one() -> None:
    text = "official:\n- func: f.a(Tensor x) -> Tensor\n- func: f.b(Tensor x) -> Tensor\n"
    names = [op.name for op in op_plugin.read(text, "functions.yaml", "f")]
    assert names == ["f.a", "f.b"]
    assert [op.name for op in op_plugin.read(text, "functions.yaml", "f.b")] == ["f.b"]
    with pytest.raises(ImportingError, match=r"has no function 'f.c'; did you mean"):
        list(op_plugin.read(text, "functions.yaml", "f.c"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has none of the lists official, custom"),
        ("- 1", "has none of the lists"),
        ("custom: [", "is not YAML"),
        ("custom: \x07", "is not YAML"),
        ("custom: " + "[" * 100, "nested too deeply"),
        # Some versions of libyaml refuse this themselves.
        ("custom: " + "[" * 100_000, "nest"),
    ],
)
def test_another_file_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ImportingError, match=message):
        list(op_plugin.read(text, "functions.yaml"))


def test_an_entry_that_has_a_key_twice_is_not_understood() -> None:
    text = "custom:\n- func: f(Tensor x) -> Tensor\n  op_api: a\n  op_api: b\n"
    [op] = op_plugin.read(text, "functions.yaml")
    assert op.decisions[0].text.startswith("not understood: {func: f(Tensor x) -> Tensor, ")


def test_anchors_that_make_a_small_file_huge_are_cut() -> None:
    levels = "\n".join(
        f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" if i else "l0: &l0 [x, x]"
        for i in range(30)
    )
    ops = list(op_plugin.read(f"{levels}\ncustom:\n- *l29\n", "functions.yaml"))
    assert max(len(each.text) for op in ops for each in op.decisions) < 300


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportingError, match="pip install pyyaml"):
        list(op_plugin.read("custom: []", "functions.yaml"))

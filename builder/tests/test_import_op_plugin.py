"""custom-pypto import --op-plugin: the choice of functions, and what is no such file."""

import sys

import pytest
from custom_pypto_build.importing import op_plugin
from custom_pypto_build.importing.model import ImportingError


def test_func_chooses_all_overloads_or_one() -> None:
    text = "official:\n- func: f.a(Tensor x) -> Tensor\n- func: f.b(Tensor x) -> Tensor\n"
    assert [op.name for op in op_plugin.read(text, "functions.yaml", "f")] == ["f.a", "f.b"]
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
        ("custom:\n- &a [x]\n- *a", "functions.yaml:3: a value is an alias of another"),
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
    [op] = op_plugin.read(text + f"  op_api: {'b' * 300}", "functions.yaml")
    assert len(op.decisions[0].text) < 300


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        *((text, text) for text in ("7", "True", "'TND'")),
        *((text, "?") for text in ("1.0f", "0.5", "UINT_MAX", "FLT_MAX", "017", "1 << 3", "f(x)")),
    ],
)
def test_a_kernel_gets_no_constant_but_integers_bools_and_strings(text: str, passed: str) -> None:
    in_cpp = {"True": "true", "'TND'": '"TND"'}.get(text, text)
    entry = f"gen_opapi: {{new_params: {{n: '{in_cpp}'}}, exec: 'aclnnA, n'}}"
    [op] = op_plugin.read(
        f"custom:\n- func: f_(Tensor(a!) x) -> Tensor(a!)\n  op_api: a\n  {entry}", "y"
    )
    assert op.launch == f"aclnnA({passed})"
    assert any(each.text.startswith("new_params") for each in op.decisions) == (passed == "?")


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportingError, match="pip install pyyaml"):
        list(op_plugin.read("custom: []", "functions.yaml"))

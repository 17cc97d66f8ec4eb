"""The documentation covers every hook, variable, state and check of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import custom_pypto_plugin
import pytest
from custom_pypto_build import compiler
from custom_pypto_contract import manifest
from custom_pypto_discovery.installed_plugin import Status
from custom_pypto_plugin import hookspecs

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOOKS = [name for name in vars(hookspecs) if name.startswith("custom_pypto_")]


def words(page: str) -> set[str]:
    """The words in code font on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_has_a_section_with_an_example(hook: str) -> None:
    text = (DOCS / "hooks.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## `{hook}`\n")[2].partition("\n## ")[0]
    assert f"@hookimpl\ndef {hook}():" in section


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_has_a_docstring(hook: str) -> None:
    assert inspect.getdoc(getattr(hookspecs, hook))


def test_page_names_no_hook_that_is_not_there() -> None:
    packages = {"custom_pypto_testing", "custom_pypto_plugin", "custom_pypto_blocks"}
    documented = {word for word in words("hooks.md") if word.startswith("custom_pypto_")}
    assert documented - packages == set(HOOKS)


def test_every_instruction_set_is_listed_and_no_other() -> None:
    text = (DOCS / "building.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (any|x86-64|aarch64) \|(.*)\|(.*)\|$", text, re.MULTILINE)
    listed = {row[0]: [re.findall(r"\w+", cell) for cell in row[1:]] for row in rows}
    [of_any, _] = listed.pop("any")
    assert list(listed) == ["x86-64", "aarch64"]
    for processor, (ordinary, int8) in listed.items():
        machine = processor.replace("-", "_")
        known = compiler.isa_flags(machine)
        assert [*of_any, *ordinary] == list(known)
        further = compiler.isa_flags(machine, int8=True).keys() - known
        assert int8 == sorted(further)


@pytest.mark.parametrize("state", [str(state) for state in Status])
def test_state_has_a_row(state: str) -> None:
    assert f"\n| `{state}` |" in (DOCS / "discovery.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", custom_pypto_plugin.__all__)
def test_name_for_authors_is_documented(name: str) -> None:
    assert name in words("hooks.md")


@pytest.mark.parametrize("name", [manifest.GROUP, manifest.FILE_NAME])
def test_name_that_plugins_need_is_documented(name: str) -> None:
    assert f"`{name}`" in (DOCS / "discovery.md").read_text(encoding="utf-8")

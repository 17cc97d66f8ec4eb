"""The reference has every key, hook, command, environment variable, op and quoted message.

What it says of keys is compared with the code by contract/tests/test_notation.py.
"""

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import custom_pypto_plugin
import generated_docs
import pytest
from custom_pypto_build import compiler
from custom_pypto_build.settings import ISA_KINDS
from custom_pypto_cli import commands
from custom_pypto_contract import manifest, notation, ops_file
from custom_pypto_contract.notation import Key
from custom_pypto_discovery.installed_plugin import Status
from custom_pypto_plugin import hookspecs
from readme import code_of
from repository import ROOT


def keys() -> set[str]:
    """The keys of ops.toml, of every table."""
    values = [each if isinstance(each, tuple) else (each,) for each in vars(notation).values()]
    return {key.name for value in values for key in value if isinstance(key, Key)}


def variables() -> set[str]:
    """The environment variables that the sources name, in Python and in C++."""
    return {
        name
        for folder in ("*/src", "integrations/*/src", "plugins/*/src", "plugins/*/csrc")
        for path in ROOT.glob(f"{folder}/**/*")
        if path.suffix in (".py", ".h", ".cpp")
        for name in re.findall(r'"(CUSTOM_PYPTO_\w*[A-Z])"', path.read_text(encoding="utf-8"))
    }


def ops() -> set[str]:
    """The ops of this repository's plugins."""
    return {op.name for file in ROOT.glob("plugins/*/ops.toml") for op in ops_file.read(file).ops}


HOOKS = [name for name in vars(hookspecs) if name.startswith("custom_pypto_")]
SIMULATOR = "CUSTOM_PYPTO_SIM_"
SECTIONS: dict[str, tuple[str, str, Collection[str]]] = {
    "key": ("docs/contract.md", "\n| `{}` | ", keys()),
    "table": ("docs/contract.md", "\n[{}", notation.DOCUMENT),
    "hook": ("docs/hooks.md", "\n## `{}`\n", HOOKS),
    "example of a hook": ("docs/hooks.md", "@hookimpl\ndef {}():", HOOKS),
    "name for authors": ("docs/hooks.md", "`{}", custom_pypto_plugin.__all__),
    "name that plugins need": ("docs/discovery.md", "`{}`", [manifest.GROUP, manifest.FILE_NAME]),
    "state": ("docs/discovery.md", "\n| `{}` |", list(map(str, Status))),
    "command": (
        "docs/command-line.md",
        "\n## custom-pypto {0}\n\n```\n$ custom-pypto {0} --help\n",
        commands.find(),
    ),
    "variable": (
        "docs/variables.md",
        "`{}`",
        [name for name in variables() if not name.startswith(SIMULATOR)],
    ),
    "variable of the simulator": (
        "simulator/README.md",
        "\n| `{}` | ",
        [name for name in variables() if name.startswith(SIMULATOR)],
    ),
    "op": ("docs/ops.md", "`{}`", ops()),
}
"""By kind: the page, what it must say of a name, and the names."""


@pytest.mark.parametrize(
    ("page", "entry"),
    [
        pytest.param(page, form.format(name), id=f"{kind} {name}")
        for kind, (page, form, names) in SECTIONS.items()
        for name in sorted(names)
    ],
)
def test_the_reference_has(page: str, entry: str) -> None:
    assert entry in (ROOT / page).read_text(encoding="utf-8"), f"{page} does not say {entry!r}"


def test_generated_texts_are_those_of_the_code() -> None:
    assert len(dict(generated_docs.texts())) > 6
    for file, text in generated_docs.texts():
        assert file.read_text(encoding="utf-8") == text, "run python .ci/generated_docs.py --fix"


def test_no_hook_is_named_that_is_not_there() -> None:
    text = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    packages = {"custom_pypto_testing", "custom_pypto_plugin", "custom_pypto_blocks"}
    codes = re.findall(r"`([^`\n]+)`", text)
    named = {word for code in codes for word in re.findall(r"\bcustom_pypto_\w+", code)}
    assert named - packages == set(HOOKS)


def test_every_instruction_set_is_listed_and_no_other() -> None:
    text = (ROOT / "docs/building.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (any|x86-64|aarch64) \|(.*)\|(.*)\|(.*)\|$", text, re.MULTILINE)
    listed = {row[0]: [re.findall(r"\w+", cell) for cell in row[1:]] for row in rows}
    [of_any, _, _] = listed.pop("any")
    assert list(listed) == ["x86-64", "aarch64"]
    for processor, (ordinary, *of_kinds) in listed.items():
        machine = processor.replace("-", "_")
        known = compiler.isa_flags(machine)
        assert [*of_any, *ordinary] == list(known)
        for kind, isas in zip(ISA_KINDS, of_kinds, strict=True):
            assert isas == sorted(compiler.isa_flags(machine, [kind]).keys() - known)


PAGE = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
MESSAGES = [" ".join(each.split()) for each in code_of(PAGE, "text")]
# What the sources put in: a value, or a constant that is a name.
FILLED_IN = re.compile(r"'…'|…|custom_pypto\b|CUSTOM_PYPTO_\w+")


@cache
def texts() -> str:
    """The texts in the sources, a line each."""
    folders = [path for pattern in ("*/src", "integrations/*/src") for path in ROOT.glob(pattern)]
    files = [
        file for folder in folders for file in folder.rglob("*") if file.suffix in (".py", ".h")
    ]
    return "\n".join(" ".join(text.split()) for file in files for text in _strings(file))


def _strings(file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        constants = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        yield from (each.value for each in constants if isinstance(each.value, str))
    else:
        # Neighbouring literals are one, also where `+` or `,` joins them.
        yield from re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"(?:\s*\+)?\s*"', "", text))


@pytest.mark.parametrize("message", MESSAGES)
def test_the_words_of_a_message_are_those_of_the_sources(message: str) -> None:
    parts = [part.strip(" :;,") for part in FILLED_IN.split(message)]
    assert len("".join(parts)) > 15
    assert len(MESSAGES) >= 40
    assert [part for part in parts if part not in texts()] == []

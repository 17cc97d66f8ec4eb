"""The reference has every key, hook, command, environment variable, op and public name.

What it says is compared with the code: of keys by contract/tests/test_notation.py, of hooks by
core/tests/test_core_docs.py, of generated pages here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

import command_help
import cpp_signatures
import pytest
import python_reference
import variables_page
from custom_pypto_cli import commands
from custom_pypto_contract import notation, ops_file
from custom_pypto_contract.notation import Key
from custom_pypto_plugin import hookspecs
from repository import ROOT


def keys() -> set[str]:
    """The keys of ops.toml, of every table."""
    values = [each if isinstance(each, tuple) else (each,) for each in vars(notation).values()]
    return {key.name for value in values for key in value if isinstance(key, Key)}


def variables() -> set[str]:
    """The environment variables that the sources name, in Python and in C++."""
    patterns = (
        "*/src/**/*",
        "integrations/*/src/**/*",
        "plugins/*/src/**/*",
        "plugins/*/csrc/**/*",
    )
    return {
        name
        for pattern in patterns
        for path in ROOT.glob(pattern)
        if path.suffix in (".py", ".h", ".cpp")
        for name in re.findall(r'"(CUSTOM_PYPTO_\w*[A-Z])"', path.read_text(encoding="utf-8"))
    }


def ops() -> set[str]:
    """The ops of this repository's plugins."""
    files = ROOT.glob("plugins/*/ops.toml")
    return {op.name for file in files for op in ops_file.read(file).ops}


def public_names(package: str) -> list[str]:
    """The names in __all__ of a package."""
    [file] = ROOT.glob(f"*/src/{package.replace('.', '/')}/__init__.py")
    [names] = re.findall(r"^__all__ = (\[.*?\])", file.read_text(encoding="utf-8"), re.M | re.S)
    return list(ast.literal_eval(names))


SIMULATOR = "CUSTOM_PYPTO_SIM_"
SECTIONS: dict[str, tuple[str, str, Collection[str]]] = {
    "key": ("docs/contract.md", "\n| `{}` | ", keys()),
    "table": ("docs/contract.md", "\n[{}", notation.DOCUMENT),
    "hook": (
        "docs/hooks.md",
        "\n## `{}`\n",
        [name for name in vars(hookspecs) if name.startswith("custom_pypto_")],
    ),
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
    "op": ("README.md", "`{}`", ops()),
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


@pytest.mark.parametrize(
    "package", ["custom_pypto.core", "custom_pypto_plugin", "custom_pypto_testing"]
)
def test_the_page_of_python_has_every_public_name(package: str) -> None:
    page = python_reference.PAGE.read_text(encoding="utf-8")
    section = page.partition(f"\n## {package}\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^### `(\w+)`$", section, re.MULTILINE))
    assert listed == set(public_names(package))


@pytest.mark.parametrize(
    "generator", [command_help, cpp_signatures, python_reference, variables_page]
)
def test_a_generated_page_is_that_of_the_code(generator) -> None:
    text = generator.PAGE.read_text(encoding="utf-8")
    assert generator.page() == text, f"run python .ci/{generator.__name__}.py --fix"


def test_the_page_of_cpp_signatures_has_every_header_of_the_tables() -> None:
    page = cpp_signatures.PAGE.read_text(encoding="utf-8")
    for header in cpp_signatures.headers():
        if "npu/argument.h" not in str(header):  # a table of types, without a function
            assert f"## {header.relative_to(cpp_signatures.INCLUDE)}\n" in page

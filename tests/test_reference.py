"""The reference has every key, hook, command, environment variable and op.

What it says is compared with the code: of keys by contract/tests/test_notation.py, of hooks by
core/tests/test_core_docs.py, of generated pages here.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import command_help
import pytest
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


@pytest.mark.parametrize("generator", [command_help, variables_page])
def test_a_generated_page_is_that_of_the_code(generator) -> None:
    text = generator.PAGE.read_text(encoding="utf-8")
    assert generator.page() == text, f"run python .ci/{generator.__name__}.py --fix"

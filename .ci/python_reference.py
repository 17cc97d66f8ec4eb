"""Check, or with --fix write, the page of Python signatures, docs/python.md.

It has the public names of each package with their docstrings, read from the sources: nothing is
imported.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from generated_text import ROOT, main

PAGE = ROOT / "docs" / "python.md"
# A package's public names are those in __all__; those of a module without it have no underscore.
PUBLIC = (
    "core/src/custom_pypto/core",
    "core/src/custom_pypto/core/contracts",
    "core/src/custom_pypto/core/ge_operators.py",
    "core/src/custom_pypto/core/ge_steps.py",
    "core/src/custom_pypto_plugin",
    "core/src/custom_pypto_plugin/hookspecs.py",
    "testing/src/custom_pypto_testing",
    "integrations/kernels/src/custom_pypto_kernels",
    "integrations/serving/src/custom_pypto_serving",
    "integrations/transformers/src/custom_pypto_transformers",
    "simulator/src/custom_pypto_simulator",
    "simulator/src/custom_pypto_simulator_build",
)
_HEAD = """\
# Python

<!-- Generated from the docstrings by .ci/python_reference.py --fix -->

The public names of each package. Each op is also a typed function of its plugin's package
([binding.md](binding.md#functions-instead-of-pybind)). Other names may change.
"""
_ROLE = re.compile(r"``?([^`]+)``?")
# A section of a docstring, and an entry of one.
_SECTION = re.compile(r"^(Args|Raises|Returns|Yields):\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): ", re.MULTILINE)
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign


def page() -> str:
    """Return the page as it must be."""
    return "\n".join([_HEAD, *(line for path in PUBLIC for line in _module(ROOT / path))])


def _module(path: Path) -> Iterator[str]:
    source = path / "__init__.py" if path.is_dir() else path
    tree = ast.parse(source.read_text(encoding="utf-8"))
    parts = path.with_suffix("").parts
    name = ".".join(parts[parts.index("src") + 1 :])
    yield f"## {name}\n\n{_docstring(tree)}\n"
    for public, (file, definition) in sorted(_definitions(source, tree).items()):
        yield f"### `{public}`\n"
        yield from _definition(file, definition)
        if isinstance(definition, ast.ClassDef):
            fields = [f"- `{field}`: {text}" for field, text in _documented_fields(definition)]
            yield from ["\n".join([*fields, ""])] if fields else []
            for method in filter(_is_for_users, definition.body):
                yield from _definition(file, method)


def _definitions(source: Path, tree: ast.Module) -> dict[str, tuple[Path, Definition]]:
    """Return the public functions and classes of a module, and where they are defined."""
    public = next(
        (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ),
        None,
    )
    if public is None:
        return {
            node.name: (source, node)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
    return {
        _name(node): (file, node)
        for imported in ast.walk(tree)
        if isinstance(imported, ast.ImportFrom) and (file := _file(source, imported))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, Definition) and _name(node) in public
        if _name(node) in {alias.name for alias in imported.names}
    }


def _name(node: Definition) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


def _file(source: Path, node: ast.ImportFrom) -> Path | None:
    """Return the file of the module that an import names, if it is of the same distribution."""
    [root] = (each for each in source.parents if each.name == "src")
    folder = source.parents[node.level - 1] if node.level else root
    file = folder.joinpath(*(node.module or "").split(".")).with_suffix(".py")
    return file if file.exists() else None


def _definition(file: Path, definition: Definition) -> Iterator[str]:
    if isinstance(definition, ast.Assign):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        [place] = (n for n, node in enumerate(body) if ast.dump(node) == ast.dump(definition))
        yield f"{_markdown(ast.literal_eval(body[place + 1].value))}\n"
    else:
        yield f"```python\n{_head(file, definition)}\n```\n"
        yield f"{_docstring(definition)}\n"


def _head(file: Path, definition: ast.FunctionDef | ast.ClassDef) -> str:
    """Return a definition as the source has it, without its body; of a dataclass, with fields."""
    lines = file.read_text(encoding="utf-8").splitlines()
    head = "\n".join(lines[definition.lineno - 1 : definition.body[0].lineno - 1])
    decorators = [
        f"@{ast.unparse(each)}\n"
        for each in definition.decorator_list
        if ast.unparse(each) in ("property", "cached_property", "classmethod", "staticmethod")
    ]
    fields = [
        "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in definition.body
        if isinstance(definition, ast.ClassDef)
        and isinstance(node, ast.AnnAssign)
        and not any(True for _ in _documented_fields(definition))
    ]
    head = textwrap.dedent(re.sub(r"  # type: ignore.*", "", head)).strip().removesuffix(":")
    return "\n".join(["".join(decorators) + head + (":" if fields else ""), *fields])


def _documented_fields(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Return the annotated names of a class that have a docstring below them."""
    for node, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(below, ast.Expr):
            text = " ".join(ast.literal_eval(below.value).split())
            yield f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}", _markdown(text)


def _is_for_users(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return whether a part of a class is a method that users call, and not one for pytest."""
    return (
        isinstance(node, ast.FunctionDef)
        and not node.name.startswith(("_", "test_", "pytest_"))
        and not any("fixture" in ast.unparse(each) for each in node.decorator_list)
    )


def _docstring(node: ast.FunctionDef | ast.ClassDef | ast.Module) -> str:
    return _markdown(ast.get_docstring(node) or "")


def _markdown(text: str) -> str:
    def section(found: re.Match[str]) -> str:
        title, entries = found.groups()
        # A line that continues an entry stays indented, so that it belongs to the list.
        text = re.sub(r"^ {8}", "      ", _ENTRY.sub(r"    - `\1`: ", entries), flags=re.MULTILINE)
        return f"{title}:\n\n{textwrap.dedent(text)}"

    return _ROLE.sub(r"`\1`", _SECTION.sub(section, f"{text}\n")).strip()


if __name__ == "__main__":
    sys.exit(main(__doc__, {PAGE: page()}))

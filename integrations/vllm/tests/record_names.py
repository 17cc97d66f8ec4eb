"""Prints which of the names that we use the sources of a vLLM have, and functions' parameters.

``python integrations/vllm/tests/record_names.py FOLDER``, where FOLDER holds an unpacked wheel or a
checkout. The output belongs in names_of_vllm/<version>.txt.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from custom_pypto_vllm.names import NAMES


def find(root: Path, module: str, name: str) -> ast.stmt | None:
    """Find the statement that defines a name, through imports of it."""
    path = root.joinpath(*module.split("."))
    package = path / "__init__.py"
    file = package if package.exists() else path.with_suffix(".py")
    if not file.exists():
        return None
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return node
        if isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names):
            parent = module.split(".") if file == package else module.split(".")[:-1]
            base = parent[: len(parent) + 1 - node.level] if node.level else []
            source = ".".join([*base, *(node.module or "").split(".")])
            if source.startswith("vllm.") and source != module:
                return find(root, source, name)
    return None


def attributes(node: ast.stmt) -> set[str]:
    """List the methods, fields and attributes of a class."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef):
            found.add(each.name)
            if each.name == "__init__":
                found |= {argument.arg for argument in each.args.args}
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            found.add(each.attr)
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
    return found


def signature(node: ast.stmt, function: str) -> list[str]:
    """List the one signature that a class or function has under this name: ``name(x,y)``."""
    found = [each for each in ast.walk(node) if isinstance(each, ast.FunctionDef)]
    if function:
        found = [each for each in found if each.name == function]
    parameters = (
        [*each.args.args, *each.args.kwonlyargs, each.args.vararg, each.args.kwarg]
        for each in found[:1]
    )
    return [
        f"{function}({','.join(a.arg for a in args if a and a.arg not in ('self', 'cls'))})"
        for args in parameters
    ]


def record(root: Path) -> list[str]:
    """List the names that the sources have, with the attributes that we use."""
    lines = []
    for name, (module, used) in NAMES.items():
        node = find(root, module, name)
        if node is not None:
            has = []
            for each in used:
                attribute, is_function, _ = each.partition("(")
                has += (
                    signature(node, attribute)
                    if is_function
                    else [attribute] * (attribute in attributes(node))
                )
            lines.append(" ".join([f"{module}.{name}", *has]))
    return lines


if __name__ == "__main__":
    print("\n".join(record(Path(sys.argv[1]))))

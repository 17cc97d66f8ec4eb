"""What the modules of this package use of vLLM, and of what is private to torch, is in names.py."""

import ast
import dataclasses
import functools
import inspect
import logging
import pkgutil
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from custom_pypto_vllm import names

FOLDER = Path(names.__file__).parent
MODULES = {path.name: ast.parse(path.read_text()) for path in FOLDER.glob("*.py")}
PUBLIC = [
    *(torch, torch.Tensor, torch.cpu, torch.library, torch.nn, torch.nn.Module, torch.finfo),
    *(dataclasses, functools, inspect, inspect.Signature, inspect.BoundArguments, logging, pkgutil),
    *(logging.Logger, platform, re, re.Pattern, object, type, str, dict, list, names),
]
# What is asked of a configuration of transformers, and the names of namespaces of ops.
OTHERS = {"to_dict", "_C", "cpu_gemm_wna16", "custom_pypto", "custom_pypto_vllm"}
OPS = ("ops", "torch.ops.custom_pypto", "torch.ops.custom_pypto_vllm")


@functools.cache
def listed() -> set[str]:
    """Return the names of names.py and what is used of each, and what need not be listed.

    That are public attributes of others, and our own.
    """
    found = {each.partition("(")[0] for _, used in names.NAMES.values() for each in used}
    found |= OTHERS | names.NAMES.keys()
    found |= {each for owner in PUBLIC for each in dir(owner) if each[0] != "_" or each[:2] == "__"}
    for tree in MODULES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            # A class of ours alone makes its own attributes.
            if isinstance(node, ast.ClassDef) and "nn.Module" in map(ast.unparse, node.bases):
                found |= {each.attr for each in ast.walk(node) if _is_set_on_self(each)}
    return found


def _is_set_on_self(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    )


def attributes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each attribute, also of getattr and its like."""
    literal = {
        node.target.id: [each.value for each in node.iter.elts if isinstance(each, ast.Constant)]
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.comprehension)
        and isinstance(node.target, ast.Name)
        and isinstance(node.iter, ast.Tuple)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not _is_of_others(node.value):
            yield node.lineno, node.attr
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attr"):
            owner, name, *_ = node.args
            if isinstance(name, ast.Constant) and not _is_of_others(owner):
                yield node.lineno, str(name.value)
            if isinstance(name, ast.Name):
                yield from ((node.lineno, str(each)) for each in literal.get(name.id, ()))


def _is_of_others(node: ast.expr) -> bool:
    """Whether it is a namespace of ops, or what a config.json says."""
    return ast.unparse(node) in ("hf", *OPS)


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"names.py"}))
def test_used_attributes_are_listed(module: str) -> None:
    unlisted = {each for each in attributes(MODULES[module]) if each[1] not in listed()}
    assert not unlisted, f"add to names.py what {module} uses in these lines: {sorted(unlisted)}"


def test_an_attribute_that_is_not_listed_is_found() -> None:
    source = """
x.private
hasattr(x, "of_a_string")
for each in ("in_a_loop", "W_UV"):
    setattr(x, each, None)
torch._C.of_torch
ops.npu_op
"""
    found = {name for _, name in attributes(ast.parse(source)) if name not in listed()}
    assert found == {"private", "of_a_string", "in_a_loop", "of_torch"}


@pytest.mark.parametrize("module", MODULES)
def test_vllm_is_imported_by_names_alone(module: str) -> None:
    for node in ast.walk(MODULES[module]):
        imported = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.append(node.module)
        assert not [each for each in imported if each.split(".")[0] == "vllm"]

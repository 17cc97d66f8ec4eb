"""The stub of torch._ops by which type checkers and editors know the ops.

`torch.ops` finds ops at run time, by __getattr__. What checkers know of it can be changed only by a
partial stub package of torch (PEP 561), which replaces whole modules. So the stub is torch's own
module, where `torch.ops` has one more attribute.
"""

from __future__ import annotations

import ast
import keyword
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from custom_pypto_contract import python_signature
from custom_pypto_contract.contract import OpContract
from custom_pypto_discovery.installed_plugin import op_family

STUB = "_ops.pyi"

_MARK = "# Written by `custom-pypto stubs`"
_HEAD = f"""\
{_MARK}: torch._ops of torch {{version}}, and the ops of custom_pypto.
# mypy: ignore-errors
"""
# Where torch's module may use a name otherwise, ours has an underscore.
_IMPORTS = """

from collections.abc import Sequence
from typing import overload as _overload

from torch import Tensor
"""


def write(package: Path, torch: Path, version: str, ops: Iterable[OpContract]) -> Path:
    """Write the stub package with `ops` of torch, whose package is in the folder `torch`.

    Returns the stub with the ops. Raises LookupError if this torch has no class of `torch.ops`.
    """
    text = _stub_text((torch / "_ops.py").read_text(encoding="utf-8"), version, ops)
    # Beside a partial stub package pyright does not find a package that has stubs alone, such as
    # torch._C, where torch has it.
    for source in torch.rglob("*.pyi"):
        copy = package / source.relative_to(torch)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    # Of everything else, torch's own types hold.
    (package / "py.typed").write_text("partial\n", encoding="utf-8")
    stub = package / STUB
    stub.write_text(text, encoding="utf-8")
    return stub


def is_written(package: Path) -> bool:
    """Whether `write` wrote the package."""
    stub = package / STUB
    return stub.is_file() and stub.read_text(encoding="utf-8").startswith(_MARK)


def _stub_text(source: str, version: str, ops: Iterable[OpContract]) -> str:
    classes = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "_Ops"
    ]
    if not classes:
        raise LookupError(f"torch {version} has no class torch._ops._Ops")
    lines = source.splitlines()
    lines.insert(classes[0].body[0].lineno - 1, "    custom_pypto: _CustomPyptoOps\n")
    head = _HEAD.format(version=version)
    return head + "\n".join(lines) + _IMPORTS + "\n".join(_classes(ops)) + "\n"


def _classes(ops: Iterable[OpContract]) -> Iterator[str]:
    families = [
        (family, list(members))
        for family, members in groupby(
            sorted(ops, key=lambda op: op.name.split(".")), key=lambda op: op_family(op.name)
        )
        # `torch.ops.custom_pypto.lambda` is no Python.
        if not keyword.iskeyword(family)
    ]
    for family, members in families:
        yield from _family(family, members)
    # It has no other attribute: a misspelt name is an error, as at run time.
    yield "\n\nclass _CustomPyptoOps:"
    yield '    """The ops of the installed plugins."""'
    for family, [first, *_] in families:
        yield f"\n    {family}: _Packet__{family}"
        yield from _indent(python_signature.docstring(first), 4)


def _family(family: str, ops: Sequence[OpContract]) -> Iterator[str]:
    # `__call__` is in a class of its own, because overloads may have the names of types.
    for op in ops:
        call, overload = _class_names(op)
        yield f"\n\nclass {call}:"
        yield from _call(op)
        yield f"\n\nclass {overload}({call}, OpOverload): ..."
    call = _class_names(ops[0])[0]
    if len(ops) > 1:
        call = f"_AnyCall__{family}"
        yield f"\n\nclass {call}:"
        for op in ops:
            yield "    @_overload"
            yield from _call(op)
    yield f"\n\nclass _Packet__{family}({call}, OpOverloadPacket):"
    yield '    """An op with its overloads."""'
    for op in ops:
        name = op.name.partition(".")[2] or "default"
        if not keyword.iskeyword(name):
            yield f"    {name}: {_class_names(op)[1]}"


def _class_names(op: OpContract) -> tuple[str, str]:
    name = op.name.replace(".", "__")
    return f"_Call__{name}", f"_Overload__{name}"


def _call(op: OpContract) -> Iterator[str]:
    has_self = any(argument.name == "self" for argument in op.arguments)
    itself = "_op_itself" if has_self else "self"
    taken = ", ".join([itself, "/", *python_signature.parameters(op.schema)])
    yield f"    def __call__({taken}) -> {python_signature.returned(op.schema)}:"
    yield from _indent(python_signature.docstring(op), 8)


def _indent(lines: Iterable[str], columns: int) -> Iterator[str]:
    return (f"{' ' * columns}{line}" if line else "" for line in lines)

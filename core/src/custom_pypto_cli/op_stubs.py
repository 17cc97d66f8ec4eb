"""The stub of torch._ops by which type checkers and editors know the ops.

`torch.ops` finds ops at run time, by __getattr__. What checkers know of it can be changed only by a
partial stub package of torch (PEP 561), which replaces whole modules. So the stub is torch's own
module, where `torch.ops` has one more attribute.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from custom_pypto_contract import python_signature
from custom_pypto_contract.contract import OpContract
from custom_pypto_discovery.installed_plugin import op_family

MARK = "# Written by `custom-pypto stubs`"

_HEAD = f"""\
{MARK}: torch._ops of torch {{torch}}, and the ops of custom_pypto.
# mypy: ignore-errors
"""
# Where torch's module may use a name otherwise, ours has an underscore.
_IMPORTS = """

from collections.abc import Sequence
from typing import overload as _overload

from torch import Tensor
"""


def stub_text(source: str, torch: str, ops: Iterable[OpContract]) -> str:
    """Return the stub: `source`, which is torch/_ops.py of the version `torch`, with `ops`.

    Raises:
        LookupError: the source has no class of `torch.ops`.
    """
    classes = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "_Ops"
    ]
    if not classes:
        raise LookupError("it has no class _Ops")
    lines = source.splitlines()
    lines.insert(classes[0].body[0].lineno - 1, "    custom_pypto: _CustomPyptoOps\n")
    return _HEAD.format(torch=torch) + "\n".join(lines) + _IMPORTS + "\n".join(_classes(ops)) + "\n"


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
    # An op may have an argument `self`.
    taken = ", ".join(["_op_itself", "/", *python_signature.parameters(op)])
    yield f"    def __call__({taken}) -> {python_signature.returned(op)}:"
    yield from _indent(python_signature.docstring(op), 8)


def _indent(lines: Iterable[str], columns: int) -> Iterator[str]:
    return (f"{' ' * columns}{line}" if line else "" for line in lines)

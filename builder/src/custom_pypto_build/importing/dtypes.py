"""The dtypes of an operator's tensors, in the words of ops.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from custom_pypto_contract.dtypes import DTYPES

from .model import UNKNOWN, Definition, ImportedOp, Kind, Subject, Tensor

DTYPE = re.compile(r"(?:ge::)?DT_(\w+)")
_OTHER_NAMES = {"bfloat16": "BF16", "float32": "FLOAT", "float64": "DOUBLE"}
_DTYPES = {"FLOAT32": "float32", **{_OTHER_NAMES.get(name, name.upper()): name for name in DTYPES}}
"""The name in ops.toml of each dtype of CANN that it has."""


def describe(op: ImportedOp, definition: Definition) -> None:
    """Write the dtypes of an op's tensors and outputs, and rules for those that belong together."""
    tensors = [each for each in (*definition.inputs, *definition.results) if each.dtypes]
    columns = [each for each in tensors if each.is_column]
    if len({len(each.dtypes or ()) for each in columns}) > 1:
        text = "the lists of dtypes have different lengths, so which belong together is unclear"
        op.decide(definition.place, Subject.DTYPE, text)
        return
    of = _known(op, definition, tensors, columns) if tensors else {}
    free: list[Tensor] = []
    for tensor in definition.inputs:
        if tensor.name not in op.tensors or not of.get(tensor.name):
            continue
        same = _same_as(tensor, columns, of)
        words = " ".join(dict.fromkeys(of[tensor.name]))
        op.tensors[tensor.name]["dtype"] = f"={same}" if same else words
        if same is None and tensor in columns and len(set(of[tensor.name])) > 1:
            free.append(tensor)
    required = [each.name for each in free if each.kind is Kind.REQUIRED]
    if required:
        _relate(op, required, of)
    for tensor in free:
        if tensor.kind is Kind.OPTIONAL:
            _relate(op, [*required, tensor.name], of)
    for tensor in definition.results:
        same = _same_as(tensor, columns, of)
        different = list(dict.fromkeys(of.get(tensor.name, ())))
        dtype = different[0] if len(different) == 1 else UNKNOWN
        dtype = f"={same}" if same else dtype
        op.outputs[tensor.name]["dtype"] = dtype
        if dtype == UNKNOWN:
            given = f": one of {', '.join(different)}" if different else ""
            text = f"the dtype of output {tensor.name} follows from no input's{given}"
            op.decide(tensor.place, Subject.DTYPE, text)


def _known(
    op: ImportedOp, definition: Definition, tensors: Sequence[Tensor], columns: Sequence[Tensor]
) -> dict[str, list[str]]:
    """Return the dtypes of each of some tensors, without the dtypes that ops.toml lacks.

    A combination of columns is left out if ops.toml lacks one of its dtypes.
    """
    others = [each for each in tensors if not each.is_column]
    for tensor in (*columns, *others):
        if unknown := [each for each in tensor.dtypes or () if each not in _DTYPES]:
            shown = ", ".join(f"DT_{each}" for each in dict.fromkeys(unknown))
            text = f"{tensor.name}: ops.toml has no dtype for {shown}; left out"
            op.decide(tensor.place, Subject.NARROWER, text)
    rows = zip(*[each.dtypes or () for each in columns], strict=True)
    known = [row for row in dict.fromkeys(rows) if set(row) <= _DTYPES.keys()]
    if columns and not known:
        text = "every combination of dtypes has one that ops.toml lacks"
        op.decide(definition.place, Subject.DTYPE, text)
    found = {each.name: [_DTYPES[row[i]] for row in known] for i, each in enumerate(columns)}
    for each in others:
        found[each.name] = [_DTYPES[dtype] for dtype in each.dtypes or () if dtype in _DTYPES]
    return found


def _same_as(tensor: Tensor, columns: Sequence[Tensor], of: dict[str, list[str]]) -> str | None:
    """Return an earlier input that always has the dtype of `tensor`, which may have several."""
    if not tensor.is_column or len(set(of.get(tensor.name, ()))) < 2:
        return None
    for each in columns:
        if each is tensor:
            return None
        if each.kind is Kind.REQUIRED and of[each.name] == of[tensor.name]:
            return each.name
    return None


def _relate(op: ImportedOp, names: Sequence[str], of: Mapping[str, list[str]]) -> None:
    """Add a rule that lists the allowed combinations of dtypes, unless all are allowed."""
    rows = list(dict.fromkeys(zip(*(of[each] for each in names), strict=True)))
    if len(rows) == prod(len(set(of[each])) for each in names):
        return
    check = " or ".join(
        f"({' and '.join(f'{n}.dtype == {d}' for n, d in zip(names, row, strict=True))})"
        for row in rows
    )
    shown = ", ".join(f"{{{each}.dtype}}" for each in names)
    op.rules.append(
        {
            "argument": names[-1],
            "check": check,
            "message": f"must have a dtype that goes with those of {', '.join(names[:-1])};"
            f" got {shown}",
        }
    )

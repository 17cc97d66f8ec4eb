"""An op's signature and help as the source of a Python function.

Annotations name `Sequence`, `Tensor` and `torch`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from .contract import OpContract
from .description import describe
from .schema import Argument, Schema

_TYPES = {"ScalarType": "torch.dtype", "Device": "torch.device | str"}


def parameters(schema: Schema) -> Iterator[str]:
    """Yield the parameters, such as ``k: int = 1``, and ``*`` before those by keyword only."""
    is_keyword_only = False
    for argument in schema.arguments:
        if argument.is_keyword_only and not is_keyword_only:
            yield "*"
        is_keyword_only = argument.is_keyword_only
        yield f"{argument.name}: {_annotation(argument)}{_default(argument)}"


def returned(schema: Schema) -> str:
    """Return the annotation of what the op returns."""
    types = [_type(each.type, "list") for each in schema.returns]
    if len(types) > 1:
        return f"tuple[{', '.join(types)}]"
    return types[0] if types else "None"


def docstring(op: OpContract) -> Iterator[str]:
    """Yield the lines of a docstring with the op's help."""
    first, *lines = describe(op).replace("\\", "\\\\").replace('"""', '\\"\\"\\"').split("\n")
    yield f'"""{first}'
    yield from lines
    yield '"""'


def _annotation(argument: Argument) -> str:
    annotation = _type(argument.type, "Sequence")
    default = argument.default_value
    if argument.type.endswith("[]") and default is not None and not isinstance(default, list):
        # One number stands for all elements of a list with a size.
        return f"{_type(argument.type[:-2], 'Sequence')} | {annotation}"
    return annotation


def _default(argument: Argument) -> str:
    if argument.default is None:
        return ""
    default = argument.default_value
    if isinstance(default, str):
        return f" = {json.dumps(default)}"
    return f" = {tuple(default) if isinstance(default, list) else default!r}"


def _type(type_: str, sequence: str) -> str:
    if type_.endswith("?"):
        return f"{_type(type_[:-1], sequence)} | None"
    if type_.endswith("[]"):
        return f"{sequence}[{_type(type_[:-2], sequence)}]"
    return _TYPES.get(type_, type_)

"""Reads prototypes of GE's operators: ``REG_OP(Add).INPUT(x1, ..) .. OP_END_FACTORY_REG(Add)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from custom_pypto_contract import cpp_text

from .dtypes import DTYPE
from .model import Attribute, Definition, Kind, Place, Subject, Tensor
from .source import Source

_BEGIN = re.compile(r"\bREG_OP\s*\(\s*(?P<name>\w+)\s*\)")
_TENSOR_TYPE = re.compile(r"(?:List)?TensorType\s*(?P<inner>[({].*[)}])", re.DOTALL)
_ANY = "TensorType::ALL()"

_TENSORS = {
    "INPUT": Kind.REQUIRED,
    "OPTIONAL_INPUT": Kind.OPTIONAL,
    "DYNAMIC_INPUT": Kind.DYNAMIC,
    "OUTPUT": Kind.REQUIRED,
    "DYNAMIC_OUTPUT": Kind.DYNAMIC,
}


def read(source: Source) -> Iterator[Definition]:
    """Return the operators that a source registers."""
    text = source.text
    at = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < at:
            # It stands in an argument of the one before, which is not understood.
            continue
        definition = Definition(begin[1], source.place(begin.start()), constants=source.constants)
        named: dict[str, list[str] | None] = {}
        uses: dict[str, list[Tensor]] = {}
        at = begin.end()
        for macro, argument, start, end in source.calls(at):
            at = end
            if macro.startswith("OP_END"):
                break
            place = source.place(start)
            match macro, _split(argument):
                case _, [name, of] if macro in _TENSORS:
                    tensor = Tensor(name, place, _TENSORS[macro])
                    if of[:1] == '"':
                        uses.setdefault(of.strip('"'), []).append(tensor)
                    else:
                        tensor.dtypes = _dtypes(definition, of, place)
                    (definition.outputs if "OUTPUT" in macro else definition.inputs).append(tensor)
                case "ATTR", [name, type_, *default]:
                    definition.attributes.append(Attribute(name, place, type_, ", ".join(default)))
                case "REQUIRED_ATTR", [name, type_]:
                    definition.attributes.append(Attribute(name, place, type_))
                case "DATATYPE", [name, of]:
                    named[name] = _dtypes(definition, of, place)
                case _, arguments:
                    text = f".{macro}({', '.join(arguments)}): not understood"
                    definition.decide(place, Subject.KEY, text)
        else:
            problem = "REG_OP has no OP_END_FACTORY_REG, or something between that is no macro"
            definition.decide(definition.place, Subject.SCHEMA, problem)
        for name, tensors in sorted(uses.items()):
            if name not in named:
                problem = f'no .DATATYPE says what "{name}" is'
                definition.decide(tensors[0].place, Subject.DTYPE, problem)
            # One name for several tensors: they have one dtype.
            for tensor in tensors:
                tensor.dtypes, tensor.is_column = named.get(name), len(tensors) > 1
        yield definition


@lru_cache(1024)
def _split(arguments: str) -> list[str]:
    # Headers repeat few texts thousands of times.
    return list(cpp_text.split(arguments))


@lru_cache(1024)
def _dtypes_in(text: str) -> list[str]:
    match = _TENSOR_TYPE.fullmatch(text)
    return DTYPE.findall(match["inner"]) if match is not None else []


def _dtypes(definition: Definition, text: str, place: Place) -> list[str] | None:
    """Return the dtypes of a ``TensorType``; None if it is any, or not understood."""
    found = _dtypes_in(text)
    if not found and text != _ANY:
        definition.decide(place, Subject.DTYPE, f"{text}: not understood; list the dtypes")
    return found or None

"""Reads OpDef classes of AscendC: ``this->Input("x").ParamType(REQUIRED).DataType({..});``."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping

from custom_pypto_contract import cpp_text

from .dtypes import DTYPE
from .infer_shape import ShapeFunctions
from .model import SCHEMA_TYPES, Attribute, Definition, Kind, Place, Subject, Tensor
from .source import Call, Source

_CLASS = re.compile(r"\bclass\s+(?P<name>\w+)\s*(?:final\s*)?:\s*public\s+(?:\w+::)*OpDef\s*(?=\{)")
_CONSTRUCTOR = re.compile(r":\s*OpDef\s*\(\s*\w+\s*\)\s*(?=\{)")
_PARAMETER = re.compile(r'this\s*->\s*(?P<what>Input|Output|Attr)\s*\(\s*"(?P<name>\w+)"\s*\)')

# The methods that are understood, and their arguments; None: any. Formats and what the build does
# for each SoC have no effect: a launch passes tensors in the format they have.
_OF_TENSORS: Mapping[str, Collection[str] | None] = {
    "ParamType": Kind.__members__,
    **dict.fromkeys(("DataType", "DataTypeList", "Format", "FormatList", "UnknownShapeFormat")),
    **dict.fromkeys(("AutoContiguous", "IgnoreContiguous")),
}
_OF_ATTRIBUTES: Mapping[str, Collection[str] | None] = {
    "AttrType": ("REQUIRED", "OPTIONAL"),
    **dict.fromkeys(SCHEMA_TYPES),
}
_OF_THE_BUILD = re.compile(
    r"this\s*->\s*(?:AICore|SetInfer\w+|SetCheck\w+)\b|(?:OpAICoreConfig|OpAICPUConfig)\b"
)
_OF_A_SOC = re.compile(r"(?P<config>\w+)\s*\.\s*(?P<what>\w+)\s*\(")
_OF_A_TENSOR = re.compile(r'\.\s*(?:Input|Output)\s*\(\s*"(?P<name>\w+)"')


def read(source: Source, shapes: ShapeFunctions) -> Iterator[Definition]:
    """Return the operators whose classes are in a source, which has these shape functions."""
    text = source.text
    constructors = [each.end() for each in _CONSTRUCTOR.finditer(text)]
    at = 0
    for match in _CLASS.finditer(text):
        if match.start() < at:
            # It stands in the constructor of the one before, which is not understood.
            continue
        place = source.place(match.start())
        definition = Definition(match["name"], place, constants=source.constants)
        class_end = source.ends[match.end()]
        number = bisect_left(constructors, match.end())
        begin = constructors[number] if number < len(constructors) else class_end
        inner_end = source.ends[begin] if begin < class_end else 0
        if not inner_end:
            problem = f"class {match['name']} has no constructor `{match['name']}(..) : OpDef(..)`"
            definition.decide(definition.place, Subject.SCHEMA, problem)
            yield definition
            continue
        at = inner_end
        body = text[begin + 1 : inner_end - 1]
        offset = begin + 1
        for statement in cpp_text.split(body, ";"):
            offset = text.index(statement, offset)
            end = offset + len(statement)
            _statement(definition, source, offset, end)
            offset = end
        definition.same_shapes = shapes.of_class(body)
        yield definition


def _statement(definition: Definition, source: Source, start: int, end: int) -> None:
    """Read the statement of a constructor that is between two offsets."""
    match = _PARAMETER.match(source.text, start)
    if match is None:
        _other(definition, source.text[start:end], source.place(start))
        return
    name, place, at = match["name"], source.place(start), match.end()
    calls = list(source.calls(at))
    has_dtypes, understood = True, _OF_ATTRIBUTES
    if match["what"] == "Attr":
        definition.attributes.append(_attribute(name, place, calls))
    else:
        tensor = _tensor(name, place, calls, source.constants)
        (definition.inputs if match["what"] == "Input" else definition.outputs).append(tensor)
        has_dtypes, understood = bool(tensor.dtypes), _OF_TENSORS
    for call in calls:
        arguments = understood.get(call.name, ())
        if arguments is not None and call.argument not in arguments:
            text = f"{name}: .{call.name}({call.argument}): not understood"
            definition.decide(source.place(call.start), Subject.KEY, text)
        at = call.end
    if rest := source.text[at:end].strip():
        definition.decide(source.place(at), Subject.KEY, f"{rest}: not understood")
    if not has_dtypes:
        definition.decide(place, Subject.DTYPE, f"{name}: no list of dtypes is understood")


def _tensor(name: str, place: Place, calls: Iterable[Call], constants: Mapping[str, str]) -> Tensor:
    tensor = Tensor(name, place)
    for call in calls:
        if call.name == "ParamType" and call.argument in Kind.__members__:
            tensor.kind = Kind[call.argument]
        elif call.name in ("DataType", "DataTypeList"):
            tensor.dtypes = DTYPE.findall(constants.get(call.argument, call.argument))
            tensor.is_column = call.name == "DataType"
    return tensor


def _attribute(name: str, place: Place, calls: Iterable[Call]) -> Attribute:
    attribute = Attribute(name, place)
    for call in calls:
        if call.name in SCHEMA_TYPES:
            attribute.type, attribute.default = call.name, call.argument
    kinds = [call.argument for call in calls if call.name == "AttrType"]
    if kinds[-1:] == ["REQUIRED"]:
        attribute.default = None
    return attribute


def _other(definition: Definition, text: str, place: Place) -> None:
    if _OF_THE_BUILD.match(text):
        return
    of_soc = _OF_A_SOC.match(text)
    if of_soc is None or of_soc["config"] == "this":
        definition.decide(place, Subject.KEY, f"{text}: not understood")
    elif tensor := _OF_A_TENSOR.search(text):
        text = f"{tensor['name']}: {of_soc['config']} has dtypes of its own for a SoC; left out"
        definition.decide(place, Subject.NARROWER, text)

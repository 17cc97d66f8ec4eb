"""Reads OpDef classes of AscendC: ``this->Input("x").ParamType(REQUIRED).DataType({..});``."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from custom_pypto_contract import cpp_text

from .definition import Attribute, Definition, Kind, Tensor
from .infer_shape import ShapeFunctions
from .model import Place, Subject
from .source import Source

_CLASS = re.compile(r"\bclass\s+(?P<name>\w+)\s*(?:final\s*)?:\s*public\s+(?:\w+::)*OpDef\s*(?=\{)")
_CONSTRUCTOR = re.compile(r":\s*OpDef\s*\(\s*\w+\s*\)\s*(?=\{)")
_PARAMETER = re.compile(r'this\s*->\s*(?P<what>Input|Output|Attr)\s*\(\s*"(?P<name>\w+)"\s*\)')
_METHOD = re.compile(r"\s*\.\s*(?P<method>\w+)\s*(?=\()")
_DTYPE = re.compile(r"(?:ge::)?DT_(\w+)")

# Formats, and what the build does for each SoC: a launch passes tensors in the format they have.
_WITHOUT_EFFECT = {
    "Format",
    "FormatList",
    "UnknownShapeFormat",
    "AutoContiguous",
    "IgnoreContiguous",
}
_OF_THE_BUILD = re.compile(
    r"this\s*->\s*(?:AICore|SetInfer\w+|SetCheck\w+)\b|(?:OpAICoreConfig|OpAICPUConfig)\b"
)
_OF_A_SOC = re.compile(r"(?P<config>\w+)\s*\.\s*(?P<what>\w+)\s*\(")
_OF_A_TENSOR = re.compile(r'\.\s*(?:Input|Output)\s*\(\s*"(?P<name>\w+)"')
_ATTRIBUTE_TYPES = ("Int", "Float", "Bool", "String", "ListInt", "ListFloat", "ListBool")


def read(source: Source, shapes: ShapeFunctions) -> Iterator[Definition]:
    """Return the operators whose classes are in a source, which has these shape functions."""
    text = source.text
    constructors = [each.end() for each in _CONSTRUCTOR.finditer(text)]
    at = 0
    for match in _CLASS.finditer(text):
        if match.start() < at:
            # It stands in the constructor of the one before, which is not understood.
            continue
        definition = Definition(match["name"], source.place(match.start()))
        end = source.end_of(match.end()) or 0
        number = bisect_left(constructors, match.end())
        begin = constructors[number] if number < len(constructors) else end
        inner_end = source.end_of(begin) if begin < end else None
        if inner_end is None:
            problem = f"class {match['name']} has no constructor `{match['name']}(..) : OpDef(..)`"
            definition.problems.append((definition.place, Subject.SCHEMA, problem))
            yield definition
            continue
        at = inner_end
        body = text[begin + 1 : inner_end - 1]
        offset = begin + 1
        for statement in cpp_text.split(body, ";"):
            offset = text.index(statement, offset)
            _Statement(definition, statement, source, offset).read()
            offset += len(statement)
        definition.same_shapes = shapes.of_class(body)
        yield definition


class _Statement:
    def __init__(self, definition: Definition, text: str, source: Source, offset: int) -> None:
        self._definition = definition
        self._text = text
        self._source = source
        self._offset = offset

    def _place_of(self, at: int) -> Place:
        return self._source.place(self._offset + at)

    def read(self) -> None:
        match = _PARAMETER.match(self._text)
        if match is None:
            self._other()
            return
        place = self._place_of(0)
        if match["what"] == "Attr":
            attribute = Attribute(match["name"], place)
            self._definition.attributes.append(attribute)
            self._attribute(attribute, match.end())
            return
        tensor = Tensor(match["name"], place)
        is_input = match["what"] == "Input"
        (self._definition.inputs if is_input else self._definition.outputs).append(tensor)
        for method, argument, at in self._methods(match.end()):
            if method == "ParamType" and argument in Kind.__members__:
                tensor.kind = Kind[argument]
            elif method in ("DataType", "DataTypeList"):
                tensor.dtypes = _DTYPE.findall(self._source.constants.get(argument, argument))
                tensor.is_column = method == "DataType"
            elif method not in _WITHOUT_EFFECT:
                self._problem(at, f"{tensor.name}: .{method}({argument}): not understood")
        if not tensor.dtypes:
            text = f"{tensor.name}: no list of dtypes is understood"
            self._definition.problems.append((place, Subject.DTYPE, text))

    def _attribute(self, attribute: Attribute, start: int) -> None:
        is_required = False
        for method, argument, at in self._methods(start):
            if method == "AttrType" and argument in ("REQUIRED", "OPTIONAL"):
                is_required = argument == "REQUIRED"
            elif method in _ATTRIBUTE_TYPES:
                attribute.type = method
                attribute.default = argument
            else:
                self._problem(at, f"{attribute.name}: .{method}({argument}): not understood")
        if is_required:
            attribute.default = None

    def _methods(self, start: int) -> Iterator[tuple[str, str, int]]:
        """Return name, argument and offset of each method in a chain."""
        at = start
        while (match := _METHOD.match(self._text, at)) is not None:
            end = self._source.end_of(self._offset + match.end())
            if end is None:
                break
            end -= self._offset
            yield match["method"], self._text[match.end() + 1 : end - 1].strip(), match.start(1)
            at = end
        if self._text[at:].strip():
            self._problem(at, f"{self._text[at:].strip()}: not understood")

    def _other(self) -> None:
        if _OF_THE_BUILD.match(self._text):
            return
        of_soc = _OF_A_SOC.match(self._text)
        if of_soc is None or of_soc["config"] == "this":
            self._problem(0, f"{self._text}: not understood")
            return
        tensor = _OF_A_TENSOR.search(self._text)
        if tensor is not None:
            text = f"{tensor['name']}: {of_soc['config']} has dtypes of its own for a SoC; left out"
            self._definition.problems.append((self._place_of(0), Subject.NARROWER, text))

    def _problem(self, at: int, text: str) -> None:
        self._definition.problems.append((self._place_of(at), Subject.KEY, text))

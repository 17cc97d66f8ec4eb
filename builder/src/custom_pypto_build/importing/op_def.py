"""Reads OpDef classes of AscendC: ``this->Input("x").ParamType(REQUIRED).DataType({..});``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from custom_pypto_contract import cpp_text

from . import infer_shape
from .definition import Attribute, Definition, Kind, Tensor, read_constants
from .model import Place, Subject

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


def read(text: str, file: str) -> Iterator[Definition]:
    """Return the operators whose classes are in the text of a source without comments."""
    constants = read_constants(text)
    lines = cpp_text.Lines(text)
    for match in _CLASS.finditer(text):
        definition = Definition(match["name"], Place(file, lines.number_at(match.start())))
        end = cpp_text.find_end(text, match.end())
        constructor = _CONSTRUCTOR.search(text, match.end(), end or match.end())
        inner_end = constructor and cpp_text.find_end(text, constructor.end())
        if constructor is None or inner_end is None:
            problem = f"class {match['name']} has no constructor `{match['name']}(..) : OpDef(..)`"
            definition.problems.append((definition.place, Subject.SCHEMA, problem))
            yield definition
            continue
        body = text[constructor.end() + 1 : inner_end - 1]
        offset = constructor.end() + 1
        for statement in cpp_text.split(body, ";"):
            offset = text.index(statement, offset)
            _Statement(definition, statement, constants, file, lines, offset).read()
            offset += len(statement)
        definition.same_shapes = infer_shape.read_of_class(text, body)
        yield definition


class _Statement:
    """One statement of a constructor."""

    def __init__(
        self,
        definition: Definition,
        text: str,
        constants: Mapping[str, str],
        file: str,
        lines: cpp_text.Lines,
        offset: int,
    ) -> None:
        self._definition = definition
        self._text = text
        self._constants = constants
        self._file = file
        self._lines = lines
        self._offset = offset

    def _place_of(self, at: int) -> Place:
        return Place(self._file, self._lines.number_at(self._offset + at))

    def read(self) -> None:
        """Add what it says to the definition."""
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
                tensor.dtypes = _DTYPE.findall(self._constants.get(argument, argument))
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
            end = cpp_text.find_end(self._text, match.end())
            if end is None:
                break
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

"""Imports files: reads each by its form, and joins what they say of one operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from custom_pypto_contract import aclnn_header, cpp_text, small_file
from custom_pypto_contract.aclnn_header import Declaration
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.schema import parse_schema

from custom_pypto_build.ops_header.cpp_names import struct_name

from . import kernel_call, op_def, op_plugin, operator_op, ops_toml, reg_op
from .infer_shape import ShapeFunctions
from .model import Definition, ImportedOp, ImportingError, Place, Subject
from .ops_toml import Imported
from .source import Source

Read = TypeVar("Read")
Declared = tuple[Declaration, Place]

# In the comment at the top of the headers that CANN's build writes.
_GENERATED = "this file was generated automatic"


@dataclass(frozen=True)
class Sources:
    """The files of each form."""

    aclnn: tuple[Path, ...] = ()
    reg_op: tuple[Path, ...] = ()
    op_plugin: tuple[Path, ...] = ()
    function: str | None = None
    """The one function to take of `op_plugin`."""

    @property
    def names(self) -> dict[Path, str]:
        """The name of each file; its path where another file has the same name."""
        files = dict.fromkeys((*self.aclnn, *self.reg_op, *self.op_plugin))
        count = Counter(path.name for path in files)
        return {path: path.name if count[path.name] == 1 else str(path) for path in files}


def read(sources: Sources) -> Imported:
    """Return the ops that the files describe.

    Raises:
        ImportingError: no file can be read as what it was said to be; the text says why for each.
    """
    skipped: list[str] = []
    names = sources.names
    headers = _read_each(sources.aclnn, lambda path: _header(path, names[path]), skipped)
    definitions = _read_each(sources.reg_op, lambda path: _Operators(path, names[path]), skipped)
    functions = _read_each(
        sources.op_plugin,
        lambda path: list(op_plugin.read(_text(path), names[path], sources.function)),
        skipped,
    )
    if not (headers or definitions or functions):
        raise ImportingError("\n".join(skipped))
    declared, problems = _declarations(each for found in headers.values() for each in found)
    ops = [op for found in functions.values() for op in found]
    for op in ops:
        _check_against_header(op, declared)
    used = {op.launch.partition("(")[0] for op in ops}
    for definition in _definitions(definitions.values()):
        kernel = f"aclnn{definition.name}"
        used.add(kernel)
        ops.append(operator_op.from_definition(definition, declared.get(kernel)))
    for kernel, (declaration, place) in declared.items():
        if kernel not in used:
            ops.append(operator_op.from_declaration(declaration, place))
    for op in ops:
        if (problem := problems.get(op.launch.partition("(")[0])) is not None:
            op.decide(problem[0], Subject.KERNEL, problem[1])
    ops_toml.check_size(ops)
    return Imported(list(_named_once(map(ops_toml.check, ops))), skipped)


def _read_each(
    paths: Iterable[Path], read: Callable[[Path], Read], skipped: list[str]
) -> dict[Path, Read]:
    """Read each file; add the reasons for those that are not suitable to `skipped`."""
    found: dict[Path, Read] = {}
    for path in paths:
        try:
            found[path] = read(path)
        except ImportingError as error:
            skipped.append(str(error))
    return found


def _text(path: Path) -> str:
    try:
        return small_file.read(path)
    except OSError as error:
        reason = error.strerror or error
        raise ImportingError(f"cannot read {path}: {reason}") from None


def _header(path: Path, name: str) -> list[Declared]:
    found = aclnn_header.parse(text := _text(path))
    if not found:
        raise ImportingError(
            f"{path} declares no kernel; --aclnn takes a header with functions"
            " `aclnnStatus aclnn<Name>GetWorkspaceSize(..)`"
        )
    place = Place(name, 0, is_generated=_GENERATED in text)
    return [(each, place._replace(line=each.line)) for each in found]


def _declarations(
    found: Iterable[Declared],
) -> tuple[dict[str, Declared], dict[str, tuple[Place, str]]]:
    """Return the first declaration of each kernel, and where another one differs."""
    declared: dict[str, Declared] = {}
    problems: dict[str, tuple[Place, str]] = {}
    for each, place in found:
        other, where = declared.setdefault(each.name, (each, place))
        if other.parameters != each.parameters:
            text = f"{each.name} has other parameters than at {where}; give the header of one"
            text += " version, after the preprocessor if both are in one file"
            problems.setdefault(each.name, (place, text))
    return declared, problems


class _Operators:
    """The operators of a file: of its classes, of its prototypes, and their shape functions."""

    def __init__(self, path: Path, name: str) -> None:
        source = Source(_text(path), name)
        self.shapes = ShapeFunctions(source)
        self.classes = list(op_def.read(source, self.shapes))
        self.prototypes = list(reg_op.read(source))
        if not (self.classes or self.prototypes or "IMPL_OP" in source.text):
            raise ImportingError(
                f"{path} has no operator; --reg-op takes files with `REG_OP(Name)`,"
                " `class Name : public OpDef`, or the `IMPL_OP(Name)` of their shape functions"
            )


def _definitions(files: Collection[_Operators]) -> list[Definition]:
    """Return each operator, from its class if it has one, else from its prototype."""
    of_classes: dict[str, Definition] = {}
    of_prototypes: dict[str, Definition] = {}
    for file in files:
        for of, found in ((of_classes, file.classes), (of_prototypes, file.prototypes)):
            for each in found:
                first = of.setdefault(each.name, each)
                if first is not each:
                    text = f"{each.name} stands at {each.place} too; give one of the two"
                    first.decide(first.place, Subject.SCHEMA, text)
    for name in of_prototypes.keys() & of_classes.keys():
        _compare(of_classes[name], of_prototypes[name])
    definitions = list({**of_prototypes, **of_classes}.values())
    for definition in definitions:
        for file in files:
            copied = file.shapes.of_operator(definition.name)
            definition.same_shapes = definition.same_shapes or copied
    return definitions


def _compare(definition: Definition, prototype: Definition) -> None:
    """Note where the operator in graphs is not the one of the class."""
    for what in ("inputs", "outputs", "attributes"):
        ours, theirs = (
            [each.name for each in getattr(one, what)] for one in (definition, prototype)
        )
        if ours != theirs:
            text = f"REG_OP has the {what} {', '.join(theirs)}, the class {', '.join(ours)}"
            definition.decide(prototype.place, Subject.KERNEL, text)


def _check_against_header(op: ImportedOp, declared: Mapping[str, Declared]) -> None:
    """Compare the call of a kernel with its declaration, if a header has that."""
    kernel, _, passed = op.launch.removesuffix(")").partition("(")
    if kernel not in declared:
        return
    declaration, place = declared[kernel]
    try:
        schema = parse_schema(op.schema)
        arguments = list(cpp_text.split(passed))
        for problem in kernel_call.compare(schema, op.outputs, arguments, declaration):
            op.decide(place, Subject.KERNEL, f"{kernel}: {problem}")
    except (ContractError, ValueError, SyntaxError):
        # The op needs a person for another reason, which is in its decisions already.
        return


def _named_once(ops: Iterable[ImportedOp]) -> Iterator[ImportedOp]:
    """Return the ops; of those with one name only the first stays complete."""
    first: dict[str, ImportedOp] = {}
    for op in ops:
        other = first.setdefault(struct_name(op.name), op)
        if op.name and other is not op:
            text = f"{other.name} at {other.place} has the same name; choose one, or rename it"
            op.decide(op.place, Subject.SCHEMA, text)
        yield op

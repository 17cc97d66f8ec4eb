"""Imports files: reads each by its form, and joins what they say of one operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import aclnn_header, cpp_text, small_file
from custom_pypto_contract.aclnn_header import Declaration
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.schema import parse_schema

from custom_pypto_build.ops_header.names import struct_name

from . import infer_shape, kernel_call, op_def, op_plugin, operator_op, ops_toml, reg_op
from .definition import Definition, read_constants
from .model import ImportedOp, ImportingError, Place, Subject

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
    def files(self) -> list[str]:
        """The names of all files."""
        return [path.name for path in (*self.aclnn, *self.reg_op, *self.op_plugin)]


def read(sources: Sources) -> list[ImportedOp]:
    """Return the ops that the files describe, checked.

    Raises:
        ImportingError: a file cannot be read as what it was said to be.
    """
    headers = {path.name: _text(path) for path in sources.aclnn}
    declared = _declarations(headers)
    generated = {name for name, text in headers.items() if _GENERATED in text}
    ops = [
        op
        for path in sources.op_plugin
        for op in op_plugin.read(_text(path), path.name, sources.function)
    ]
    for op in ops:
        _check_against_header(op, declared)
    used = {op.launch.partition("(")[0] for op in ops}
    for definition, constants in _definitions(sources.reg_op):
        kernel = kernel_call.kernel_name(definition.name)
        used.add(kernel)
        ops.append(operator_op.from_definition(definition, constants, declared.get(kernel)))
    for kernel, (declaration, place) in declared.items():
        if kernel not in used:
            is_generated = place.file in generated
            ops.append(operator_op.from_declaration(declaration, place, is_generated=is_generated))
    return list(_named_once(map(ops_toml.check, ops)))


def _text(path: Path) -> str:
    try:
        return small_file.read(path)
    except OSError as error:
        reason = error.strerror or error
        raise ImportingError(f"cannot read {path}: {reason}") from None


def _declarations(headers: Mapping[str, str]) -> dict[str, tuple[Declaration, Place]]:
    declared: dict[str, tuple[Declaration, Place]] = {}
    for name, text in headers.items():
        found = aclnn_header.parse(text)
        if not found:
            raise ImportingError(
                f"{name} declares no kernel; --aclnn takes a header with functions"
                " `aclnnStatus aclnn<Name>GetWorkspaceSize(..)`"
            )
        for each in found:
            place = Place(name, each.line)
            other, where = declared.setdefault(each.name, (each, place))
            if other.parameters != each.parameters:
                raise ImportingError(
                    f"{place}: {each.name} has other parameters than at {where}; give the header"
                    " of one version, after the preprocessor if both are in one file"
                )
    return declared


def _definitions(paths: Iterable[Path]) -> list[tuple[Definition, dict[str, str]]]:
    """Return each operator with the constants of its file: of its class, else of its prototype.

    Classes say which dtypes belong together, prototypes do not.
    """
    texts = {path: cpp_text.blank_comments(_text(path)) for path in paths}
    of_classes: dict[str, tuple[Definition, dict[str, str]]] = {}
    of_prototypes: dict[str, tuple[Definition, dict[str, str]]] = {}
    for path, text in texts.items():
        constants = read_constants(text)
        is_of_operator = "IMPL_OP" in text
        for of, read in ((of_classes, op_def.read), (of_prototypes, reg_op.read)):
            for each in read(text, path.name):
                is_of_operator = True
                if each.name in of:
                    other = of[each.name][0].place
                    raise ImportingError(f"{each.place}: {each.name} stands at {other} too")
                of[each.name] = (each, constants)
        if not is_of_operator:
            raise ImportingError(
                f"{path} has no operator; --reg-op takes files with `REG_OP(Name)`,"
                " `class Name : public OpDef`, or the `IMPL_OP(Name)` of their shape functions"
            )
    for name, (prototype, _) in of_prototypes.items():
        if name in of_classes:
            _compare(of_classes[name][0], prototype)
    definitions = list({**of_prototypes, **of_classes}.values())
    for definition, _ in definitions:
        for text in texts.values():
            definition.same_shapes = definition.same_shapes or infer_shape.read_of_operator(
                text, definition.name
            )
    return definitions


def _compare(definition: Definition, prototype: Definition) -> None:
    """Note where the operator in graphs is not the one of the class."""
    for what in ("inputs", "outputs", "attributes"):
        ours, theirs = (
            [each.name for each in getattr(one, what)] for one in (definition, prototype)
        )
        if ours != theirs:
            text = f"REG_OP has the {what} {', '.join(theirs)}, the class {', '.join(ours)}"
            definition.problems.append((prototype.place, Subject.KERNEL, text))


def _check_against_header(op: ImportedOp, declared: dict[str, tuple[Declaration, Place]]) -> None:
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

"""Makes the op of an operator, from its definition and from its kernel's header."""

from __future__ import annotations

import re

from custom_pypto_contract.aclnn_header import Declaration, Parameter
from custom_pypto_contract.schema import MOST_ARGUMENTS

from . import cpp_values, dtypes, kernel_call
from .model import UNKNOWN, Definition, ImportedOp, Kind, Place, Subject

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def from_definition(
    definition: Definition, declared: tuple[Declaration, Place] | None
) -> ImportedOp:
    """Return the op of an operator, and of its kernel's declaration if a header has one."""
    op = ImportedOp(
        _op_name(definition.name), definition.place, "", decisions=[*definition.decisions]
    )
    arguments = len(definition.inputs) + len(definition.attributes)
    if max(arguments, len(definition.outputs)) > MOST_ARGUMENTS:
        text = f"{arguments} inputs and attributes, {len(definition.outputs)} outputs: an op has at"
        op.decide(definition.place, Subject.SCHEMA, f"{text} most {MOST_ARGUMENTS} of each")
        return op
    for each in definition.inputs:
        if each.kind is not Kind.DYNAMIC:
            op.tensors[each.name] = {}
    for each in definition.results:
        op.outputs[each.name] = {"shape": UNKNOWN, "dtype": UNKNOWN}
        if each.kind is not Kind.REQUIRED:
            text = f"output {each.name} is {each.kind.value}: a schema has no such result"
            op.decide(each.place, Subject.SCHEMA, text)
    op.schema = _schema(op, definition)
    _shapes(op, definition)
    dtypes.describe(op, definition)
    names = [each.name for each in definition.inputs]
    names += [each.name for each in definition.attributes]
    passed = ", ".join([f"{each}={each}" for each in names])
    results = ", ".join([each.name for each in definition.outputs])
    op.graph = f"{definition.name}({passed}) -> {results}"
    _launch(op, definition, declared)
    return op


def from_declaration(declaration: Declaration, place: Place) -> ImportedOp:
    """Return the op of a kernel of which only a header is known.

    Generated headers end the name of an optional tensor in ``Optional``, of a written one in
    ``Ref``, and of an output in ``Out``; a single output is ``out``.
    """
    op = ImportedOp(_op_name(declaration.name.removeprefix("aclnn")), place, "")
    if not place.is_generated:
        text = "a person wrote this header: look which tensors it writes, and which may be null"
        op.decide(place, Subject.SCHEMA, text)
    parameters = declaration.arguments
    if parameters is None:
        text = "its last two parameters are not `uint64_t *` and `aclOpExecutor **`"
        op.decide(place, Subject.KERNEL, text)
        return op
    written, results = [], []
    for number, each in enumerate(parameters, start=1):
        type_ = kernel_call.schema_type(each)
        if type_ is None or not each.name:
            text = f"parameter {number}, `{each.type} {each.name}`: a launch passes no such type"
            op.decide(place, Subject.SCHEMA, text)
            type_ = each.type.replace(" ", "")
        if type_ == "Tensor" and (each.name == "out" or each.name.endswith("Out")):
            results.append(each.name)
            op.outputs[each.name] = {"shape": UNKNOWN, "dtype": UNKNOWN}
            text = f"a header says neither shape nor dtype of output {each.name}"
            op.decide(place, Subject.SHAPE, text)
            continue
        written.append(f"{_declared_type(op, place, each, type_)} {each.name}")
        if type_ == "Tensor":
            op.tensors[each.name] = {}
    op.schema = f"{op.name}({', '.join(written)}) -> {_returns(results)}"
    op.launch = f"{declaration.name}({', '.join(each.name for each in parameters)})"
    if op.is_complete and not results and "!" not in op.schema:
        text = "no parameter is an output: mark what the kernel writes, as in Tensor(a!) x"
        op.decide(place, Subject.SCHEMA, text)
    return op


def _declared_type(op: ImportedOp, place: Place, parameter: Parameter, type_: str) -> str:
    if type_ not in ("Tensor", "Tensor[]"):
        return type_
    if parameter.name.endswith("Ref") and type_ == "Tensor":
        return f"Tensor({_alias(len(op.tensors))}!)"
    if not parameter.type.startswith("const "):
        text = f"`{parameter.type}{parameter.name}` is not const: an output, or written in place?"
        op.decide(place, Subject.SCHEMA, text)
    return "Tensor?" if parameter.name.endswith("Optional") and type_ == "Tensor" else type_


def _schema(op: ImportedOp, definition: Definition) -> str:
    outputs = {each.name for each in definition.outputs}
    # The operator writes these.
    references = [each for each in definition.inputs if each.name in outputs]
    arguments = []
    for index, each in enumerate(definition.inputs):
        type_ = "Tensor"
        if each in references:
            type_ = f"Tensor({_alias(references.index(each))}!)"
        if each.kind is Kind.DYNAMIC:
            type_ += "[]"
        default = ""
        if each.kind is Kind.OPTIONAL:
            type_ += "?"
            is_last = all(other.kind is Kind.OPTIONAL for other in definition.inputs[index:])
            default = "=None" if is_last else ""
        arguments.append(f"{type_} {each.name}{default}")
    if definition.attributes:
        arguments.append("*")
    for attribute in definition.attributes:
        known = attribute.schema_type
        if known is None:
            text = f"attribute {attribute.name} is of type {attribute.type or 'unknown'}"
            op.decide(attribute.place, Subject.SCHEMA, text)
        default = ""
        if attribute.default is not None:
            read = cpp_values.read_default(attribute.default, definition.constants)
            if read is None:
                what = "is not REQUIRED, and has no default"
                if attribute.default:
                    what = f"has the default {attribute.default}, which import does not read"
                op.decide(attribute.place, Subject.SCHEMA, f"attribute {attribute.name} {what}")
            default = f"={UNKNOWN if read is None else read}"
        arguments.append(f"{known or attribute.type} {attribute.name}{default}")
    results = [each.name for each in definition.results]
    return f"{op.name}({', '.join(arguments)}) -> {_returns(results)}"


def _returns(names: list[str]) -> str:
    if len(names) == 1:
        return "Tensor"
    return f"({', '.join(f'Tensor {each}' for each in names)})"


def _shapes(op: ImportedOp, definition: Definition) -> None:
    """Give each output the shape of the input that the shape function copies."""
    numbers = {each.name: number for number, each in enumerate(definition.outputs)}
    for result in definition.results:
        number = (definition.same_shapes or {}).get(numbers[result.name], len(definition.inputs))
        before = definition.inputs[: number + 1]
        # A shape function counts the inputs that are given.
        if number == len(before) - 1 and all(each.kind is Kind.REQUIRED for each in before):
            op.outputs[result.name]["shape"] = op.give_shape(before[-1].name)
        else:
            text = (
                f"the shape of output {result.name}: no shape function was given, or it does more"
                " than copy the shape of an input that every call has"
            )
            op.decide(result.place, Subject.SHAPE, text)


def _launch(
    op: ImportedOp, definition: Definition, declared: tuple[Declaration, Place] | None
) -> None:
    kernel = f"aclnn{definition.name}"
    order = list(kernel_call.argument_types(definition))
    if declared is None:
        op.decide(
            definition.place,
            Subject.KERNEL,
            f"no header declares {kernel}: give the one that the build of the opp package writes"
            " (op_api/include/aclnn_*.h) by --aclnn; the order here is the one that it generates",
        )
    else:
        declaration, place = declared
        order, problems = kernel_call.match(definition, declaration)
        if declaration.arguments is None:
            problems = ["its last two parameters are not `uint64_t *` and `aclOpExecutor **`"]
        for problem in problems:
            op.decide(place, Subject.KERNEL, f"{kernel}: {problem}")
    op.launch = f"{kernel}({', '.join(order)})"


def _op_name(operator: str) -> str:
    """Return ``add_custom`` for ``AddCustom``."""
    return _WORD.sub("_", operator).lower()


def _alias(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number}"

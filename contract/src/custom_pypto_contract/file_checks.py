"""Checks of an author's file. Contracts in manifests have passed them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

from .call import GRAPH_ATTRIBUTES
from .contract import OpContract, Output, Tensor
from .errors import ContractError, any_of, check_known
from .expression_names import names_in
from .op_table import Constants
from .shape import Choice, choices, narrow, variants


def check_file_form(op: OpContract, constants: Constants) -> None:
    """Check one op of ops.toml.

    Raises:
        ContractError: a key says something that samples, kernels or graphs cannot do.
    """
    for argument in op.arguments:
        if argument.name in constants:
            raise ContractError(f"schema: {argument.name!r} is a constant, and no argument's name")
    _check_selectors(op)
    _check_dtypes(op)
    _check_output_dims(op)
    _check_launch(op)
    _check_graph(op)
    _check_definition(op)


def _check_selectors(op: OpContract) -> None:
    """Check that each selector has one of the values listed, and is checked before."""
    for index, tensor in enumerate(op.tensors):
        earlier = [each.name for each in op.tensors[:index]]
        where = f"tensors.{tensor.name}.shape"
        for choice in choices(tensor.shape):
            if choice.tensor not in (None, tensor.name, *earlier):
                raise ContractError(
                    f"{where}: {choice.selector} chooses it, and {choice.tensor!r} is checked"
                    " later; write another 'check_order'"
                )
            if choice.tensor != tensor.name:
                _check_values(op, where, choice)
    for output in op.outputs or ():
        for choice in choices(output.shape):
            where = f"outputs.{output.name}.shape"
            _check_values(op, where, choice)
            missing = op.values_without_tree(choice)
            if missing:
                raise ContractError(f"{where}: there is none for {choice.selector} {missing[0]!r}")


def _check_values(op: OpContract, where: str, choice: Choice) -> None:
    """Check that something limits the values of a choice's selector."""
    selector = choice.selector
    if None not in op.values_of(selector):
        return
    if choice.tensor:
        raise ContractError(
            f"{where}: {selector} chooses, and {choice.tensor!r} can be None or have any number of"
            f" dims; write which it can have: tensors.{choice.tensor}.ndim = {list(choice.trees)}"
        )
    if op.argument(selector).is_optional:
        raise ContractError(f"{where}: {selector!r} chooses, and may be None")
    allowed = ", ".join(map(repr, choice.trees)) + "," * (len(choice.trees) == 1)
    raise ContractError(
        f"scalars: {selector!r} chooses a variant; write which values it can have:"
        f' {selector} = "in ({allowed})"'
    )


def _check_dtypes(op: OpContract) -> None:
    """Check that no tensors have the dtype of each other in a circle."""
    same_as = {each.name: each.dtype.same_as for each in op.tensors}
    for name in same_as:
        path = [name]
        while (following := same_as.get(path[-1])) is not None and following not in path:
            path.append(following)
        if following == name:
            shown = " -> ".join([*path, name])
            raise ContractError(f"tensors.{name}.dtype: circular: {shown}; list the dtypes of one")


def _check_launch(op: OpContract) -> None:
    for call in op.npu.launch:
        if call.results or any(parameter for parameter, _ in call.values):
            raise ContractError(
                f"npu.launch: {call.text!r}: a kernel takes values by position, its outputs among"
                " them: aclnnName(self, out)"
            )
        written = [each.name for each in op.arguments if each.is_mutable]
        for name in (*written, *(each.name for each in op.outputs or ())):
            if name not in call.names:
                what = "the written argument" if name in written else "the output"
                raise ContractError(
                    f"npu.launch: {call.text!r} does not pass {what} {name!r}, so nothing would"
                    " write it; pass it where the kernel's header has it"
                )


def _check_output_dims(op: OpContract) -> None:
    """Check that each dim of an output is bound by an argument that every call gives."""
    for output in op.outputs or ():
        where = f"outputs.{output.name}"
        for chosen, shape in variants(output.shape):
            bound = {
                name
                for tensor in op.tensors
                if _is_given(op, tensor, chosen, output)
                for name in op.dims_in(narrow(tensor.shape, chosen))
            }
            bound |= {name for each in op.tensors for name in op.dims_always_in(each)}
            for dim in (*shape, *([output.length] if output.length else [])):
                for name in sorted((names_in(dim.expression) & op.dims.keys()) - bound):
                    by = [
                        each.name
                        for each in op.tensors
                        if any(other.name == name for other in each.all_dims)
                    ]
                    case = "".join(f" with {key} {value!r}" for key, value in chosen.items())
                    raise ContractError(
                        f"{where}: its dim {dim.text!r} is one of {any_of(map(repr, by))}, which a"
                        f" call{case} may leave out or give empty; use a dim of a tensor that every"
                        " call gives, or an int argument of the schema"
                    )
        same = output.dtype.same_as
        for tensor in (each for each in op.tensors if each.name == same):
            if not _is_given(op, tensor, {}, output):
                raise ContractError(
                    f"{where}: its dtype is that of {same!r}, which may be empty; name its dtype,"
                    " or a tensor that every call gives"
                )


def _is_given(op: OpContract, tensor: Tensor, chosen: Mapping[str, Any], output: Output) -> bool:
    """Whether a call with the `chosen` variants gives a tensor, or a list that is not empty."""
    if tensor.is_optional and not isinstance(narrow(tensor.required_when, chosen), str):
        return False
    if not tensor.is_list or tensor.name == op.tensor_with_device:
        return True
    length = tensor.length
    if length is None or (output.length is not None and output.length.text == length.text):
        # Where the list is empty, an output of the same length is empty too.
        return length is not None
    floors = (f"{length.text} >= 1", f"{length.text} > 0")
    return any(rule.when is None and ast.unparse(rule.check) in floors for rule in op.rules)


def _check_graph(op: OpContract) -> None:
    arguments = {each.name: each for each in op.arguments}
    for call in op.npu.graph:
        where = f"npu.graph: {call.text!r}"
        if not all(parameter for parameter, _ in call.values):
            raise ContractError(f"{where}: an operator takes values by name: Operator(x=self) -> y")
        if op.schema.returns and len(call.results) != len(op.schema.returns):
            raise ContractError(
                f"{where}: it has {len(call.results)} results, but the schema"
                f" {len(op.schema.returns)} returns"
            )
        if any(each.type == "Tensor[]" for each in op.schema.returns):
            raise ContractError(
                f"{where}: the schema returns a Tensor[], and a line cannot say how many results"
                " that are; give a converter by the hook custom_pypto_converters"
            )
        for name in sorted(call.names):
            if name not in arguments:
                raise ContractError(f"{where}: {name!r} is no argument; outputs stand behind '->'")
            type_ = arguments[name].type
            if type_ not in ("Tensor", "Tensor?", "Tensor[]", *GRAPH_ATTRIBUTES):
                raise ContractError(
                    f"{where}: {name!r} is of type {type_}, and an operator takes tensors, and"
                    f" attributes of type {any_of(GRAPH_ATTRIBUTES)}; give a converter by the hook"
                    " custom_pypto_converters"
                )
        for parameter, value in call.values:
            if value.is_scalar or ast.dump(value.node) == "Constant(value=None)":
                raise ContractError(
                    f"{where}: {ast.unparse(value.node)!r} for {parameter!r} is no attribute; write"
                    " a number, or leave the parameter out"
                )
            is_list = isinstance(value.node, ast.List)
            if is_list and any(not arguments[name].is_tensor for name in value.names):
                raise ContractError(
                    f"{where}: the list for {parameter!r} is of tensors, or of numbers"
                )


def _check_definition(op: OpContract) -> None:
    """Check the names in the definition, a Python expression that may bind names itself."""
    nodes = list(ast.walk(ast.parse(op.definition or "None")))
    arguments = [each.name for each in op.arguments]
    names = [each for each in nodes if isinstance(each, ast.Name)]
    bound = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    bound |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    for name in sorted({each.id for each in names} - {"torch", *vars(builtins), *bound}):
        check_known(name, arguments, f"definition: {name!r} is no argument")

"""Checks that each name in a contract is known where it is used, and has the type it must have.

`check_file_form` checks more of an author's file; contracts in manifests have passed it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from . import nodes, types
from .call import GRAPH_ATTRIBUTES, Call
from .contract import OpContract, Output, Rule, Tensor
from .dtypes import DTYPES
from .errors import ContractError, any_of, at, check_known
from .evaluate import evaluate
from .expression import parse
from .expression_names import INFINITY, find_given, find_unguarded, names_in
from .shape import Choice, Dim, Shape, Tree, choices, leaves, narrow, variants


def check_names(op: OpContract) -> None:
    """Check that every name is an argument, a dtype, or a dim that is bound by then.

    Raises:
        ContractError: one is not; the text names the key.
    """
    known: dict[str, str] = dict.fromkeys(DTYPES, "dtype")
    for argument in op.arguments:
        if argument.name in (*known, INFINITY):
            what = "infinity" if argument.name == INFINITY else "a dtype"
            raise ContractError(f"schema: {argument.name!r} is {what}, and no argument's name")
        known[argument.name] = types.expression_type(argument.type)
    for selector in op.selectors:
        _check_selector(op, selector)
    for tensor in op.tensors:
        with at(f"tensors.{tensor.name}"):
            _check_is_given(op, "dtype", tensor.dtype.same_as)
            bound: dict[str, str] = {}
            if tensor.length is not None:
                with at("length"):
                    known |= _check_shape(op, (tensor.length,), known)
            for shape in tensor.shapes:
                with at("shape"):
                    bound |= _check_shape(op, shape, known, tensor.length)
            known |= bound
    if op.dims_of_elements:
        if nodes.INDEX in known:
            raise ContractError(
                f"{nodes.INDEX!r} is the index of a list's tensors here; call the argument or dim"
                " otherwise"
            )
        known[nodes.INDEX] = "int"
    for key, rules in (("rules", op.rules), *op.npu.limits.items()):
        for index, rule in enumerate(rules):
            _check_rule(f"{key}: [{index}]", rule, op, known)
    for name, condition in op.npu.supports.items():
        _check_type(f"npu.supports.{name}", condition, known, "bool")
        _check_guards(f"npu.supports.{name}", op, condition, op.may_be_none)
    if op.outputs is not None:
        _check_outputs(op, op.outputs, known)
    outputs = {output.name for output in op.outputs or ()}
    known_to_costs = {**dict.fromkeys(outputs, "tensor"), **known}
    _check_cost("flops", op, op.flops, known_to_costs)
    _check_cost("bytes", op, op.bytes, known_to_costs)
    for call in (*op.npu.launch, *op.npu.graph):
        _check_names_known(
            f"npu: {call.text!r}", call.names, outputs | {each.name for each in op.arguments}
        )


def _check_shape(
    op: OpContract, shape: Shape, known: types.Types, length: Dim | None = None
) -> dict[str, str]:
    """Check the dims of a tensor, or of each in a list; return those that it may bind."""
    inside: dict[str, str] = {}
    index = {} if length is None else {nodes.INDEX: "int"}
    for dim in shape:
        if dim.is_of_element:
            _check_dim_of_element(op, dim, length)
        if dim.name is not None and dim.name not in known:
            type_ = "sizes" if dim.is_variadic else "int"
            inside[dim.name] = type_ + types.ELEMENT * dim.is_of_element
        names = {**known, **index, **inside}
        for name in sorted(names_in(dim.expression)):
            check_known(
                name,
                names,
                f"{dim.text!r} uses {name!r}, which no tensor before it has (they are checked in"
                " the order of the schema, unless 'check_order' says another)",
            )
        _check_dim(op, dim, names)
    return inside


def _check_dim_of_element(op: OpContract, dim: Dim, length: Dim | None) -> None:
    expected = op.dims_of_elements.get(dim.name or "")
    if length is None or expected is None:
        raise ContractError(
            f"{dim.text!r} is a size of each tensor of a list, whose length has a name: write"
            ' length = "E" beside the shape of a Tensor[]'
        )
    if length.text != expected.text:
        raise ContractError(
            f"{dim.text!r} is of lists with the length {expected.text!r}, and this one has"
            f" {length.text!r}"
        )


def _check_dim(op: OpContract, dim: Dim, known: types.Types) -> None:
    found = types.type_of(dim.expression, known)
    if found != ("sizes" if dim.is_variadic else "int"):
        raise ContractError(f"{dim.text!r} is of type {found}, and no size")
    for name in sorted(names_in(dim.expression)):
        if any(each.name == name and each.is_optional for each in op.arguments):
            raise ContractError(f"{dim.text!r} uses {name!r}, which may be None")


def _check_is_given(op: OpContract, key: str, name: str | None) -> None:
    """Check that `name`, if there is one, is a tensor or a list of tensors, and never None."""
    if name is None:
        return
    lists = {each.name for each in op.tensors}
    tensors = {each.name: each for each in op.arguments if each.is_tensor or each.name in lists}
    check_known(name, tensors, f"{key}: there is no tensor {name!r}")
    if tensors[name].is_optional:
        raise ContractError(f"{key}: {name!r} may be None; name a tensor that every call gives")


def _check_outputs(op: OpContract, outputs: tuple[Output, ...], known: types.Types) -> None:
    for output, returned in zip(outputs, op.schema.returns, strict=True):
        with at(f"outputs.{output.name}"):
            if returned.type not in ("Tensor", "Tensor[]"):
                raise ContractError(
                    f"the schema returns {returned.type} here, and outputs are of type Tensor or"
                    " Tensor[]: leave the table out; then the kernel returns what it makes"
                )
            is_list = returned.type == "Tensor[]"
            if output.like is not None:
                _check_is_given(op, "like", output.like)
                if op.argument(output.like).type != returned.type:
                    raise ContractError(f"like: {output.like!r} is no {returned.type}")
            elif is_list != (output.length is not None):
                raise ContractError(
                    "write the length of the list beside shape and dtype"
                    if is_list
                    else "the schema returns a Tensor here, which has no length"
                )
            elif op.tensor_with_device is None:
                raise ContractError(
                    "no argument is a Tensor that says its device: leave the table out; then the"
                    " kernel returns what it makes"
                )
            _check_is_given(op, "dtype", output.dtype.same_as)
            dims = [(dim, output.length) for shape in leaves(output.shape) for dim in shape]
            # The length itself is outside of the list.
            dims += [(output.length, None)] if output.length else []
            for dim, length in dims:
                names = {each: known[each] for each in known if length or each != nodes.INDEX}
                if dim.is_of_element:
                    _check_dim_of_element(op, dim, length)
                _check_names_known("shape", names_in(dim.expression), names)
                _check_dim(op, dim, names)
                if dim.divisor != 1:
                    raise ContractError(
                        f"{dim.text!r} is for the shapes of arguments; the size of an output is"
                        f" {dim.text.replace('/', '//')!r}, rounded down"
                    )


def _check_cost(key: str, op: OpContract, tree: Tree, known: types.Types) -> None:
    with at(key):
        for choice in choices(tree):
            _check_selector(op, choice.selector)
    optional = {each.name for each in op.arguments if each.is_optional}
    for node in leaves(tree):
        _check_type(key, node, known, "int")
        for name in sorted(names_in(node) & optional):
            raise ContractError(f"{key}: {ast.unparse(node)!r} uses {name!r}, which may be None")


def _check_rule(key: str, rule: Rule, op: OpContract, known: types.Types) -> None:
    arguments = [each.name for each in op.arguments]
    check_known(rule.argument, arguments, f"{key}: there is no argument {rule.argument!r}")
    key = f"{key} (of {rule.argument!r})"
    _check_type(key, rule.check, known, "bool")
    if rule.when is not None:
        _check_type(f"{key}: when", rule.when, known, "bool")
    for part in rule.message:
        if isinstance(part, ast.expr):
            _check_type(f"{key}: message", part, known, "")
    may_be_none = op.may_be_none & rule.tested_for_none
    if rule.when is not None:
        _check_guards(f"{key}: when", op, rule.when, may_be_none)
        may_be_none -= find_given(rule.when, True)
    _check_guards(key, op, rule.check, may_be_none)
    may_be_none -= find_given(rule.check, False)
    for part in rule.message:
        # A name alone is printed, also if it is None.
        if isinstance(part, ast.expr) and not isinstance(part, ast.Name):
            _check_guards(f"{key}: message", op, part, may_be_none)


def _check_guards(key: str, op: OpContract, node: ast.expr, may_be_none: Set[str]) -> None:
    """Check that an expression uses nothing where it may be None."""
    comparable = {each.name for each in op.arguments}
    for name in sorted(find_unguarded(node, may_be_none, comparable)):
        raise ContractError(
            f"{key}: {ast.unparse(node)!r} uses {name!r} where it may be None; test that first:"
            f" '{name} is None or ..', '{name} is not None and ..'"
        )


def _check_type(key: str, node: ast.expr, known: types.Types, expected: str) -> None:
    """Check an expression whose type is `expected`, or any that can be printed."""
    _check_names_known(key, names_in(node), known)
    with at(key):
        found = types.type_of(node, known)
        if found != expected and (expected or found in ("tensor", "tensors", "list")):
            raise ContractError(
                f"{ast.unparse(node)!r} is of type {found}"
                + (f", where {expected} is needed" if expected else ", which no message shows")
            )


def _check_names_known(key: str, used: set[str], known: Iterable[str]) -> None:
    for name in sorted(used):
        check_known(name, known, f"{key}: {name!r} is no argument, no dtype and no dim of a tensor")


def _check_selector(op: OpContract, selector: str) -> None:
    name, _, attribute = selector.partition(".")
    known = [each.name for each in op.arguments if each.is_tensor == bool(attribute)]
    if attribute not in ("", "ndim"):
        known = []
    check_known(
        name,
        known,
        f"{selector!r} is nothing to choose by: name a string, bool or int argument, or"
        " '<tensor>.ndim'",
    )


def check_file_form(op: OpContract) -> None:
    """Check one op of ops.toml.

    Raises:
        ContractError: a key says something that samples, kernels or graphs cannot do.
    """
    writes = any(each.is_mutable for each in op.arguments)
    if writes and any(each.name == "mode" for each in op.arguments):
        raise ContractError(
            "schema: torch.compile cannot call an op that writes and has a `mode`; rename `mode`"
        )
    _check_defaults(op)
    _check_selectors(op)
    _check_dtypes(op)
    _check_integers(op)
    _check_output_dims(op)
    _check_launch(op)
    for call in op.npu.graph:
        with at(f"npu.graph: {call.text!r}"):
            _check_graph_call(op, call)
    _check_definition(op)


def _check_defaults(op: OpContract) -> None:
    """Check that each default keeps the rules that read its argument alone."""
    for argument in op.arguments:
        given = {argument.name: argument.default_value}
        for rule in op.rules if argument.default_value is not None else ():
            when = rule.when or ast.Constant(True)
            is_broken = nodes.expression("when and not check", when=when, check=rule.check)
            if rule.names == given.keys() and evaluate(is_broken, given.__getitem__):
                raise ContractError(
                    f"schema: the default of `{argument.name}` is {argument.default}, which"
                    f" {ast.unparse(rule.check)!r} refuses: a call without it would fail"
                )


def _check_selectors(op: OpContract) -> None:
    """Check that each selector has one of the values listed, and is checked before."""
    for selector, values in op.selectors.items():
        allowed = [*map(str, op.values_of(selector))]
        # What ops share may have variants that this one lacks.
        for value in () if allowed in ([], ["None"]) or op.groups or op.templates else values:
            check_known(str(value), allowed, f"{selector} chooses for {value!r}, which no call has")
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
    allowed = ", ".join(map(repr, choice.trees)) + ("," if len(choice.trees) == 1 else "")
    raise ContractError(
        f"scalars: {selector!r} chooses a variant; write which values it can have:"
        f' {selector} = "in ({allowed})"'
    )


def _check_integers(op: OpContract) -> None:
    """Check the ranges of integers in tensors, and the names in them."""
    names = [*(each.name for each in op.arguments), *op.dims, nodes.INDEX]
    for tensor in op.tensors:
        for text in leaves(tensor.values):
            limits = re.split(r"(?<!\.)\.\.(?!\.)", re.sub("^(distinct|prefix_sums) ", "", text))
            with at(f"tensors.{tensor.name}.values"):
                if len(limits) != 2 and not text.startswith("prefix_sums "):
                    raise ContractError(f"{text!r} is no range; write '0 .. N - 1'")
                for each in filter(None, map(str.strip, limits)):
                    _check_names_known(repr(text), names_in(parse(each)), names)


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
    at_least_one = (f"{length.text} >= 1", f"{length.text} > 0")
    return any(rule.when is None and ast.unparse(rule.check) in at_least_one for rule in op.rules)


def _check_graph_call(op: OpContract, call: Call) -> None:
    arguments = {each.name: each for each in op.arguments}
    if not all(parameter for parameter, _ in call.values):
        raise ContractError("an operator takes values by name: Operator(x=self) -> y")
    written = {each.name: each.type for each in op.arguments if each.is_mutable}
    if "Tensor[]" in (*written.values(), *(each.type for each in op.schema.returns)):
        raise ContractError(
            "the schema returns or writes a Tensor[], and a line cannot say how many results"
            " that are; give a converter by the hook custom_pypto_converters"
        )
    for name in call.results:
        if call.results.count(name) > 1:
            raise ContractError(f"it has the result {name!r} twice; name each result once")
    for parameter, argument in call.in_place.items():
        if argument not in written:
            raise ContractError(
                f"the result {parameter!r} is called as a parameter, so the operator writes"
                f" {argument!r}, and the schema does not; give the result another name, or write"
                " Tensor(a!) in the schema"
            )
    for name in written:
        if name not in call.in_place.values():
            raise ContractError(
                f"the schema writes {name!r}, and no result is called as its parameter; name the"
                f" parameter among the results: Operator(c={name}) -> c"
            )
    results, returns = len(call.results) - len(call.in_place), len(op.schema.returns)
    if results != returns:
        raise ContractError(f"it has {results} results, but the schema {returns} returns")
    for name in sorted(call.names):
        if name not in arguments:
            raise ContractError(f"{name!r} is no argument; outputs stand behind '->'")
        type_ = arguments[name].type
        if type_ not in ("Tensor", "Tensor?", "Tensor[]", *GRAPH_ATTRIBUTES):
            raise ContractError(
                f"{name!r} is of type {type_}, and an operator takes tensors, and"
                f" attributes of type {any_of(GRAPH_ATTRIBUTES)}; give a converter by the hook"
                " custom_pypto_converters"
            )
    for parameter, value in call.values:
        is_none = isinstance(value.node, ast.Constant) and value.node.value is None
        if value.is_scalar or is_none:
            raise ContractError(
                f"{ast.unparse(value.node)!r} for {parameter!r} is no attribute; write"
                " a number, or leave the parameter out"
            )
        is_list = isinstance(value.node, ast.List)
        if is_list and any(not arguments[name].is_tensor for name in value.names):
            raise ContractError(f"the list for {parameter!r} is of tensors, or of numbers")


def _check_definition(op: OpContract) -> None:
    """Check the names in the definition, a Python expression that may bind names itself."""
    nodes = list(ast.walk(ast.parse(op.definition or "None")))
    arguments = [each.name for each in op.arguments]
    names = [each for each in nodes if isinstance(each, ast.Name)]
    bound = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    bound |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    for name in sorted({each.id for each in names} - {"torch", *vars(builtins), *bound}):
        check_known(name, arguments, f"definition: {name!r} is no argument")

"""Makes the torchair converter of a contract from its graph lines."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import bind_arguments, check_limits
from .lazy import LazyContract

if TYPE_CHECKING:
    from custom_pypto_contract.call import Call
    from custom_pypto_contract.contract import OpContract


def graph_converter(contract: LazyContract) -> Callable[..., Any]:
    """Return the converter of an op whose contract has a graph line.

    It makes a node of the first of the lines' operators that the graph engine has.
    """

    def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        from custom_pypto.core.ge_operators import is_registered

        op = contract.op
        given = bind_arguments(op, args, kwargs)
        *preferred, last = op.npu.graph
        call = next((each for each in preferred if is_registered(each.name)), last)
        # The operator X is the kernel aclnnX.
        for kernel in ("", f"aclnn{call.name}"):
            if kernel in op.npu.limits:
                check_limits(op, kernel, given)
        made = _node(op, call, given)
        # An argument written in place is among the node's results, where torchair finds it.
        return made if op.schema.returns else None

    convert.__name__ = convert.__qualname__ = contract.function_name
    return convert


def _node(op: OpContract, call: Call, given: dict[str, Any]) -> Any:
    from custom_pypto_contract.call import GRAPH_ATTRIBUTES
    from torchair import ge

    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}

    def attribute(type_: str, of: Any) -> Any:
        if type_ in ("int", "int[]"):
            # A symbol, to torchair a tensor, becomes the number that it is; torch guards that.
            of = getattr(of, "meta", of)
            of = int(of) if type_ == "int" else [*map(int, of)]
        return getattr(ge.attr, GRAPH_ATTRIBUTES[type_])(of)

    for parameter, value in call.values:
        match value.node:
            case ast.List([ast.Constant(), *_]):
                attributes[parameter] = attribute("int[]", ast.literal_eval(value.node))
            case ast.List(elements):
                inputs[parameter] = [
                    given[each.id] for each in elements if isinstance(each, ast.Name)
                ]
            case ast.Name(name) if "Tensor" in op.argument(name).type:
                inputs[parameter] = given[name]
            case ast.Name(name):
                attributes[parameter] = attribute(op.argument(name).type, given[name])
            case ast.Constant(constant):
                attributes[parameter] = attribute(type(constant).__name__, constant)
    parts = {"attrs": attributes} if attributes else {}
    return ge.custom_op(call.name, inputs=inputs, outputs=list(call.results), **parts)

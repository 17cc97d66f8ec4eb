"""The torchair converter that a contract's graph lines come to."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any

from custom_pypto_contract import manifest
from custom_pypto_contract.call import Call
from custom_pypto_contract.contract import Op

from custom_pypto.core.ge_operators import is_registered

from .fake import bound
from .limits import check_limits_of


def graph_converter(op: manifest.Op) -> Callable[..., Any] | None:
    """Return the converter of an op, or None when its contract has no graph line.

    It makes a node of the first of the lines' operators that the graph engine has.
    """
    if not op.contract.get("npu", {}).get("graph"):
        return None

    @cache
    def contract() -> Op:
        return Op.from_data(op.data)

    def convert(*args: Any, **kwargs: Any) -> Any:
        found = contract()
        kwargs.pop("meta_outputs", None)
        given = bound(found, args, kwargs)
        if "" in found.npu.limits:
            check_limits_of(found, "", given)
        *preferred, last = found.npu.graph
        call = next((each for each in preferred if is_registered(each.name)), last)
        return _node(found, call, given)

    convert.__name__ = convert.__qualname__ = op.name.replace(".", "_")
    return convert


def _node(op: Op, call: Call, given: dict[str, Any]) -> Any:
    from torchair import ge

    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    kinds = {"int": ge.attr.Int, "float": ge.attr.Float, "bool": ge.attr.Bool, "str": ge.attr.Str}
    for parameter, value in call.values:
        match value.node:
            case ast.List(elements):
                inputs[parameter] = [
                    given[each.id] for each in elements if isinstance(each, ast.Name)
                ]
            case ast.Name(name) if op.argument(name).is_tensor:
                inputs[parameter] = given[name]
            case ast.Name(name):
                attributes[parameter] = kinds[op.argument(name).type](given[name])
            case ast.Constant(constant):
                attributes[parameter] = kinds[type(constant).__name__](constant)
    parts = {"attrs": attributes} if attributes else {}
    return ge.custom_op(call.name, inputs=inputs, outputs=list(call.results), **parts)

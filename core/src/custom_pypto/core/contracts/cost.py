"""The cost of one call by its contract: floating-point operations, and bytes of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract
    from custom_pypto_contract.shape import Tree


def count_flops(op: OpContract, arguments: Mapping[str, Any]) -> int | None:
    """Return the floating-point operations of a call, by ``flops`` of the op's contract.

    `arguments` are those of the op by name, defaults included; a tensor may be on meta. None where
    the contract does not say it.

    Raises:
        RuntimeError: the op refuses the call, or the number does not fit into 64 bits.
    """
    return evaluate_cost(op, op.flops, arguments)


def count_bytes(op: OpContract, arguments: Mapping[str, Any]) -> int | None:
    """Return the bytes that a call must read and write, by ``bytes``; see `count_flops`."""
    return evaluate_cost(op, op.bytes, arguments)


def evaluate_cost(op: OpContract, tree: Tree, arguments: Mapping[str, Any]) -> int | None:
    """Return the value that a tree of expressions has for a call."""
    if tree is None:
        return None
    import torch
    from custom_pypto_contract.expression_names import names_in
    from custom_pypto_contract.shape import resolve

    from .evaluation import Evaluation, sizes_and_dtype

    given = dict(arguments)
    evaluation = Evaluation(op, given).run_checks()
    node = resolve(tree, evaluation.value_of)
    if node is None:
        return None
    for output in op.outputs or ():
        if output.name in names_in(node):
            sizes, dtype = sizes_and_dtype(output, arguments, evaluation)
            given[output.name] = torch.empty(sizes, dtype=dtype, device="meta")
    value: int = evaluation.value(node)
    return value

"""Derives the fake kernel, the NPU limits, the converter and the cost from an op's contract.

Functions here import what evaluates a contract at their first call: importing core must not wait
for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract
    from custom_pypto_contract.shape import Tree

    from .evaluation import Evaluation

__all__ = ["bind_arguments", "check_limits", "evaluate_cost", "supports"]


def bind_arguments(
    op: OpContract, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call of `op` by name, defaults included, in the schema's order."""
    given = dict(zip((each.name for each in op.arguments), args, strict=False)) | dict(kwargs)
    missing = (each for each in op.arguments if each.name not in given)
    given |= {each.name: each.default_value for each in missing}
    return {each.name: given[each.name] for each in op.arguments}


def evaluate_cost(op: OpContract, tree: Tree, arguments: Mapping[str, Any]) -> int | None:
    """Return the number that ``flops`` or ``bytes`` of the op's contract, `tree`, gives for a call.

    `arguments` has every argument by name, defaults too; a tensor may be on meta. None where
    the contract does not say it.

    Raises:
        RuntimeError: the op refuses the call, or the number does not fit into 64 bits.
    """
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


def check_limits(op: OpContract, kernel: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what `kernel` does not take, by ``npu.limits`` of the op's contract.

    `arguments` has every argument by name, defaults too: tensors, also torchair's, and
    scalars. Symbolic sizes are guarded.

    Raises:
        RuntimeError: it names the argument, the limit and the way out.
    """
    _evaluation(op, arguments).run_rules(op.npu.limits[kernel])


def supports(op: OpContract, kernel: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether `kernel` is used for a call, by ``npu.supports`` of the op's contract."""
    return bool(_evaluation(op, arguments).value(op.npu.supports[kernel]))


def _evaluation(op: OpContract, arguments: Mapping[str, Any]) -> Evaluation:
    from torch.utils._pytree import tree_map

    from .evaluation import Evaluation

    # torchair's tensors have a fake one each.
    given = tree_map(lambda each: getattr(each, "meta", each), dict(arguments))
    # The fake kernel has checked these: this binds the dims, and guards nothing.
    evaluation = Evaluation(op, given).run_checks()
    evaluation.decide = bool
    return evaluation

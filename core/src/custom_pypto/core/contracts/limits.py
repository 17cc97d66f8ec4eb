"""The limits of NPU kernels, for converters; eager mode has the same in C++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract

    from .evaluation import Evaluation


def check_limits(op: OpContract, kernel: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what `kernel` does not take, by ``npu.limits`` of the op's contract.

    `arguments` are those of the op by name, defaults included: tensors, also of torchair, and
    scalars. Symbolic sizes are guarded.

    Raises:
        RuntimeError: it names the argument, the limit and the way out.
    """
    _evaluation(op, arguments).run_rules(op.npu.limits[kernel])


def supports(op: OpContract, kernel: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether `kernel` is used for a call, by ``npu.supports`` of the op's contract."""
    return bool(_evaluation(op, arguments).value(op.npu.supports[kernel]))


def _evaluation(op: OpContract, arguments: Mapping[str, Any]) -> Evaluation:
    from .evaluation import Evaluation

    # torchair's tensors have a fake one each.
    given = {name: getattr(value, "meta", value) for name, value in arguments.items()}
    # The fake kernel has checked these: this binds the dims, and guards nothing.
    evaluation = Evaluation(op, given).run_checks()
    evaluation.decide = bool
    return evaluation

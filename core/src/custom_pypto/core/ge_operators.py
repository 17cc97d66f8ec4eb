"""Which operators this machine's graph engine has, for converters that choose among several."""

from __future__ import annotations


def is_registered(op_type: str) -> bool:
    """Whether CANN or an installed opp package registers `op_type` with the graph engine.

    ``torchair.ge.custom_op`` raises RuntimeError for a type that is not registered, but for other
    reasons too: a converter that catches it hides those. Needs torchair to be imported.

    Raises:
        RuntimeError: the graph engine cannot be asked.
    """
    # No public function of torchair asks without making a node.
    from torchair.core import _torchair

    status = _torchair.get_registered_ir_def(op_type)[0]
    if status == "None":
        raise RuntimeError(
            f"whether the graph engine has the operator {op_type} cannot be told: torchair found no"
            " libge_runner.so; check that CANN is installed and its environment is set"
        )
    return bool(status == "SUCCESS")

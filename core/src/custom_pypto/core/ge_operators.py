"""Which operators this machine's graph engine has, for converters that choose among several."""

from __future__ import annotations

from custom_pypto_contract.abi import TORCH_NPU
from custom_pypto_discovery import distributions


def is_registered(op_type: str) -> bool:
    """Whether CANN or an installed opp package registers `op_type` with the graph engine.

    ``torchair.ge.custom_op`` raises RuntimeError for a type that is not registered. A converter
    that catches it hides other errors too. torchair must be imported.

    Raises:
        RuntimeError: the graph engine's operators cannot be looked up.
    """
    return definition_of(op_type) is not None


_Named = list[tuple[str, str]]


def definition_of(op_type: str) -> tuple[_Named, _Named, _Named] | None:
    """Inputs, outputs and attributes with the kind of each; None for a type not registered."""
    # No public function of torchair looks one up without making a node.
    try:
        from torchair.core import _torchair

        look_up = _torchair.get_registered_ir_def
    except (ImportError, AttributeError) as error:
        version = distributions.version("torch_npu") or "(of unknown version)"
        raise RuntimeError(
            f"whether the graph engine has the operator {op_type} is unknown: the installed"
            f" torch_npu {version} keeps torchair's get_registered_ir_def elsewhere ({error});"
            f" torch_npu {TORCH_NPU[0]} to {TORCH_NPU[-1]} are known to work"
        ) from error
    status, inputs, outputs, attributes = look_up(op_type)
    if status == "None":
        raise RuntimeError(
            f"whether the graph engine has the operator {op_type} is unknown: torchair found no"
            " libge_runner.so; check that CANN is installed and its environment is set"
        )
    return (inputs, outputs, attributes) if status == "SUCCESS" else None

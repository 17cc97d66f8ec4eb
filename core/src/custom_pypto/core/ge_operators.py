"""Which operators this machine's graph engine has, for converters that choose among several."""

from __future__ import annotations

from collections.abc import Iterable

from custom_pypto_contract.abi import TORCH_NPU
from custom_pypto_discovery import distributions


def is_registered(op_type: str) -> bool:
    """Whether CANN or an installed opp package registers `op_type` with the graph engine.

    ``torchair.ge.custom_op`` raises RuntimeError for a type that is not registered. A converter
    that catches it hides other errors too. torchair must be imported.

    Raises:
        RuntimeError: the graph engine's operators cannot be looked up.
    """
    return _definition(op_type) is not None


def is_registered_with(
    op_type: str, *, inputs: Iterable[str], attributes: Iterable[str], outputs: Iterable[str]
) -> bool:
    """Whether `op_type` is registered and a node can have these inputs, attributes and outputs.

    Versions of CANN register one type differently. The inputs must be the first registered inputs,
    in their order; the outputs must be all registered outputs. Further attributes, and further
    optional inputs, may be registered.

    Raises:
        RuntimeError: the graph engine's operators cannot be looked up.
    """
    definition = _definition(op_type)
    if definition is None:
        return False
    registered, registered_outputs, registered_attributes = definition
    given = list(inputs)
    further = registered[len(given) :]
    return (
        [name for name, _ in registered[: len(given)]] == given
        and all(kind == "optional" for _, kind in further)
        and {name for name, _ in registered_outputs} == set(outputs)
        and {name for name, _ in registered_attributes} >= set(attributes)
    )


_Named = list[tuple[str, str]]


def _definition(op_type: str) -> tuple[_Named, _Named, _Named] | None:
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

"""Which operators this machine's graph engine has, for converters that choose among several."""

from __future__ import annotations

from importlib import metadata


def is_registered(op_type: str) -> bool:
    """Whether CANN or an installed opp package registers `op_type` with the graph engine.

    ``torchair.ge.custom_op`` raises RuntimeError for a type that is not registered, but for other
    reasons too: a converter that catches it hides those. Needs torchair to be imported.

    Raises:
        RuntimeError: the graph engine cannot be asked.
    """
    # No public function of torchair asks without making a node.
    try:
        from torchair.core import _torchair

        ask = _torchair.get_registered_ir_def
    except (ImportError, AttributeError) as error:
        raise RuntimeError(
            f"whether the graph engine has the operator {op_type} cannot be told: the installed"
            f" torch_npu {_version()} keeps torchair's get_registered_ir_def elsewhere ({error});"
            " torch_npu 2.10 to 2.14 are known to work"
        ) from error
    status = ask(op_type)[0]
    if status == "None":
        raise RuntimeError(
            f"whether the graph engine has the operator {op_type} cannot be told: torchair found no"
            " libge_runner.so; check that CANN is installed and its environment is set"
        )
    return bool(status == "SUCCESS")


def _version() -> str:
    try:
        return metadata.version("torch_npu")
    except metadata.PackageNotFoundError:
        return "(of unknown version)"

"""The contracts of the ops that are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from custom_pypto.core import namespace

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


def contract_of(op: str) -> OpContract:
    """Return the contract of a loaded op; LookupError says why there is none."""
    ops = namespace.installed()
    assert ops is not None, "custom_pypto.core was not imported"
    return ops.contract(op)

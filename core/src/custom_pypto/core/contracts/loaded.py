"""The contracts of the ops that are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


def contract_of(op: str) -> OpContract:
    """Return the contract of a loaded op."""
    # The loader uses what this package derives.
    from custom_pypto.core.loader import start

    return start().contract(op)

"""A call's arguments by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .fake import bound
from .limits import contract_of


def arguments(op: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of `op` by name, defaults included, in the schema's order."""
    return bound(contract_of(op), args, kwargs)

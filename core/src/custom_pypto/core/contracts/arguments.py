"""A call's arguments by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


def bind_arguments(
    op: OpContract, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call of `op` by name, defaults included, in the schema's order."""
    given = dict(zip((each.name for each in op.arguments), args, strict=False)) | dict(kwargs)
    missing = (each for each in op.arguments if each.name not in given)
    given |= {each.name: each.default_value for each in missing}
    return {each.name: given[each.name] for each in op.arguments}

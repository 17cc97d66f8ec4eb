"""A contract as plain data, which stands in a plugin's manifest.

The data is normalised: templates, groups, constants and defaults are filled in. So a later version
of this package reads it as it was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import notation, readers
from .contract import Npu, OpContract, Tensor
from .errors import at
from .name_checks import check_names
from .notation import Key
from .schema import Argument, parse_schema


def read_contract(data: Mapping[str, Any]) -> OpContract:
    """Return the contract in the normalised `data`.

    Raises:
        ContractError: it has no meaning; the text names the key.
    """
    with at("schema"):
        schema = parse_schema(data["schema"])
    arguments = {argument.name: argument for argument in schema.arguments}
    keys = [key for key in notation.OP if key.name in data]
    parts = _read(keys, data, but=("schema", "tensors", "npu"))
    if not schema.returns:
        parts["outputs"] = ()
    with at("npu"):
        npu = Npu(**_read(notation.NPU, data["npu"]))
    op = OpContract(
        schema=schema,
        tensors=tuple(_tensor(each, arguments) for each in data["tensors"]),
        npu=npu,
        groups=readers.read_members(data["groups"]),
        templates=readers.read_members(data["templates"]),
        data=data,
        **parts,
    )
    check_names(op)
    return op


def _tensor(data: Mapping[str, Any], arguments: Mapping[str, Argument]) -> Tensor:
    name = data["name"]
    with at(f"tensors.{name}"):
        argument = arguments[name]
        # An older manifest may lack newer keys.
        data = {**{key.name: key.default for key in notation.TENSOR}, **data}
        return Tensor(
            name, argument.is_optional, argument.is_tensor_list, **_read(notation.TENSOR, data)
        )


def _read(keys: Iterable[Key], data: Mapping[str, Any], but: Iterable[str] = ()) -> dict[str, Any]:
    found = {}
    for key in keys:
        if key.name not in but:
            with at(key.name):
                found[key.name] = key.read(data[key.name])
    return found

"""A contract that is read from its manifest at first use, so that core imports faster."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from custom_pypto_contract import manifest
from custom_pypto_contract.errors import ContractError

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


class LazyContract:
    """The contract of one op."""

    def __init__(self, op: manifest.ManifestOp) -> None:
        """Read nothing yet."""
        self.name = op.name
        self._op = op

    @cached_property
    def op(self) -> OpContract:
        """The contract.

        Raises:
            ContractError: it cannot be read, because the manifest was changed.
        """
        from custom_pypto_contract import contract_data

        try:
            return contract_data.read_contract(self._op.data)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ContractError(
                f"{self.name}: the contract in its plugin's manifest cannot be read:"
                f" {type(error).__name__}: {error}; build the plugin again, or reinstall it"
            ) from error

    @property
    def has_graph_line(self) -> bool:
        """Whether it has a graph line."""
        return bool(self._op.contract["npu"]["graph"])

    @property
    def says_outputs(self) -> bool:
        """Whether it describes the outputs, so that a fake kernel can be made."""
        return self._op.contract["outputs"] is not None or self._op.schema.endswith("-> ()")

    @property
    def function_name(self) -> str:
        """The name of functions made from it."""
        return self.name.replace(".", "_")

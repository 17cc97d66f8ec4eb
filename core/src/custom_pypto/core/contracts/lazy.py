"""A contract that is read from its manifest at first use, so that core imports faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from custom_pypto_contract import manifest
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.fork_locks import cached
from custom_pypto_discovery.printable import printable

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


BY_DATA = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What executing the checks of a contract raises only if its data is not what a build writes."""


class LazyContract:
    """The contract of one op of a plugin, which messages call `owner`."""

    def __init__(self, op: manifest.ManifestOp, owner: str = "its plugin") -> None:
        self.name = op.name
        self._op = op
        self._owner = owner

    @cached
    def op(self) -> OpContract:
        """The contract.

        Raises:
            ContractError: it cannot be read; the manifest was changed, or is of a broken build.
        """
        from custom_pypto_contract import contract_data

        from . import evaluation  # noqa: F401  # who asks for the contract uses it next

        try:
            return contract_data.read_contract(self._op.data)
        except Exception as error:
            raise self.blame(error) from error

    def blame(self, error: Exception) -> ContractError:
        """Return the error to raise where the data of the contract made reading it fail."""
        reason = printable(f"{type(error).__name__}: {error}")
        return ContractError(
            f"{self.name}: its contract in the manifest of {self._owner} cannot be read: {reason};"
            " reinstall the plugin, or build it again"
        )

    @property
    def has_graph_line(self) -> bool:
        """Whether it has a graph line."""
        return bool(self._op.contract["npu"]["graph"])

    @property
    def says_flops(self) -> bool:
        """Whether it has ``flops``."""
        return self._op.contract["flops"] is not None

    @property
    def says_outputs(self) -> bool:
        """Whether it describes the outputs, so that a fake kernel can be made."""
        return self._op.contract["outputs"] is not None or self._op.schema.endswith("-> ()")

    @property
    def function_name(self) -> str:
        """The name of functions made from it."""
        return self.name.replace(".", "_")

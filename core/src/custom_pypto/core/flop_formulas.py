"""Registers the formulas of ``flops`` with `torch.utils.flop_counter`, once that is imported.

That module takes longer to import than core, so core does not import it. torch's compiler does, and
reads the formulas, too: they must add no guard to symbolic sizes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from custom_pypto_discovery.installed_plugin import op_family

from custom_pypto.core.after_import import AfterImport
from custom_pypto.core.contracts import bind_arguments, evaluate_cost
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.namespace import find_packet

_MODULE = "torch.utils.flop_counter"


class FlopFormulas:
    """The formulas of the loaded plugins' ops; `contracts` returns the contracts."""

    def __init__(self, contracts: Callable[[], Iterable[LazyContract]]) -> None:
        self._contracts = contracts
        self._imports = AfterImport([_MODULE], self._register)

    def update(self) -> None:
        """Register the formulas of ops that have none yet, now or after the import."""
        if _MODULE in sys.modules:
            self._register()
        elif any(each.says_flops for each in self._contracts()):
            self._imports.watch()

    def _register(self) -> None:
        from torch.utils import flop_counter

        contracts = list(self._contracts())
        # torch has one formula for all overloads of a name.
        families = Counter(op_family(each.name) for each in contracts)
        for contract in contracts:
            family = op_family(contract.name)
            if not contract.says_flops or families[family] > 1:
                continue
            packet = find_packet(family)
            # It may have one of the user.
            if packet not in flop_counter.flop_registry:
                flop_counter.register_flop_formula(packet, get_raw=True)(_formula(contract))


def _formula(contract: LazyContract) -> Callable[..., int]:
    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        op = contract.op
        return evaluate_cost(op, op.flops, bind_arguments(op, args, kwargs)) or 0

    return count

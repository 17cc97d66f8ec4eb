"""The ops that the conformance suite runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from custom_pypto import core
from custom_pypto.core.namespace import find_overload

from .call import Call
from .case import Case, is_differentiable
from .drawing import NoCallError
from .drawn_samples import drawn_samples

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract as Contract
    from custom_pypto_plugin import Reference, SampleInput
    from torch._ops import OpOverload


@dataclass(frozen=True)
class Op:
    """An op with its reference, its cases on one device, and its contract if it has one."""

    name: str
    overload: OpOverload[..., Any]
    reference: Reference | None
    cases: tuple[Case, ...]
    device: str = "cpu"
    contract: Contract | None = None

    @property
    def is_differentiable(self) -> bool:
        """Whether the op has an autograd formula."""
        return is_differentiable(self.overload)


@dataclass(frozen=True)
class Subject:
    """Ops with their samples and references, by op name."""

    ops: Mapping[str, OpOverload[..., Any]]
    samples: Mapping[str, Callable[[str], Iterable[SampleInput]]]
    references: Mapping[str, Reference]
    contracts: Mapping[str, Contract] = field(default_factory=dict)

    @classmethod
    def of_plugin(cls, name: str) -> Subject:
        """The ops of the plugin `name`.

        Raises:
            AssertionError: it is not loaded; the message says why, or which plugins there are.
        """
        found = [record for record in core.plugins() if record.name == name]
        if not found:
            names = ", ".join(record.name for record in core.plugins()) or "none"
            raise AssertionError(f"no plugin named {name!r} is installed; installed: {names}")
        for record in found:
            if record.status != "loaded":
                raise AssertionError(f"plugin {name!r} is {record.status}: {record.reason}")
        ops = [op.name for op in found[0].ops]
        references = {op: core.reference(op) for op in ops}
        return cls(
            ops={op: find_overload(op) for op in ops},
            samples={op: partial(core.samples, op) for op in ops},
            references={op: each for op, each in references.items() if each is not None},
            contracts={op: core.contract(op) for op in ops},
        )

    def ops_on(self, device: str) -> list[Op]:
        """The ops with their samples on `device`. A sample without a name is named by its number.

        Raises:
            AssertionError: two samples of an op have the same name.
        """
        return [self.op_on(name, device) for name in self.ops]

    def _samples(self, name: str, device: str) -> Iterable[SampleInput]:
        """The author's samples; without them, samples drawn from the contract."""
        given = tuple(self.samples[name](device)) if name in self.samples else ()
        if given or name not in self.contracts:
            return given
        try:
            drawn = tuple(drawn_samples(self.contracts[name], device))
        except NoCallError:
            if device == "cpu":
                raise
            # The limits of a kernel for NPUs may be narrower than what is drawn.
            drawn = ()
        return (self._on(device, name, each) for each in drawn)

    def _on(self, device: str, name: str, sample: SampleInput) -> SampleInput:
        call = Call(self.ops[name], sample.args, sample.kwargs).on(device)
        resized = sample.resized and self._on(device, name, sample.resized)
        return replace(sample, args=call.args, kwargs=call.kwargs, resized=resized)

    def op_on(self, name: str, device: str) -> Op:
        """One of them; see `ops_on`."""
        samples = [
            sample if sample.name else replace(sample, name=str(number))
            for number, sample in enumerate(self._samples(name, device))
        ]
        names = [sample.name for sample in samples]
        for each in names:
            if names.count(each) > 1:
                raise AssertionError(f"{name}: two samples are named {each!r}; rename one")
        overload, reference = self.ops[name], self.references.get(name)
        contract = self.contracts.get(name)
        cases = tuple(Case(overload, sample, reference, contract) for sample in samples)
        return Op(name, overload, reference, cases, device, contract)

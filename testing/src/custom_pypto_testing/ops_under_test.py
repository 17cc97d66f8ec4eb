"""The ops that the conformance suite runs on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from custom_pypto import core
from custom_pypto.core.namespace import find_overload
from custom_pypto_contract.dispatch_keys import AUTOGRAD_KEYS, COMPOSED

from .case import Case
from .drawn_samples import drawn_samples
from .sample_generator import NoCallError

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract as Contract
    from custom_pypto_plugin import Reference, SampleInput
    from torch._ops import OpOverload


@dataclass(frozen=True, eq=False)
class Op:
    """An op on a device, with the samples, the reference and the contract that it has.

    Without samples it gets samples that are drawn from the contract.
    """

    overload: OpOverload[..., Any]
    samples: tuple[SampleInput, ...] = ()
    reference: Reference | None = None
    contract: Contract | None = None
    device: str = "cpu"

    @cached_property
    def name(self) -> str:
        """The op without its namespace, with its overload if that has a name."""
        overload = self.overload._overloadname
        name = self.schema.name.split("::")[-1]
        return name if overload == "default" else f"{name}.{overload}"

    @property
    def schema(self) -> Any:
        """The schema, as torch has it."""
        return self.overload._schema

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """A case of each sample. A sample without a name is named by its number.

        Raises:
            AssertionError: two samples have the same name.
        """
        named = [
            sample if sample.name else replace(sample, name=str(number))
            for number, sample in enumerate(self.samples or self._drawn_samples())
        ]
        for name, count in Counter(sample.name for sample in named).items():
            if count > 1:
                raise AssertionError(f"{self.name}: two samples are named {name!r}; rename one")
        return tuple(Case(self, sample) for sample in named)

    @property
    def is_random(self) -> bool:
        """Whether the op draws from torch's generators."""
        return torch.Tag.nondeterministic_seeded in self.overload.tags

    @property
    def is_differentiable(self) -> bool:
        """Whether the op has an autograd formula."""
        return any(map(self.has_kernel_for, AUTOGRAD_KEYS))

    @property
    def is_composed(self) -> bool:
        """Whether the op is composed of others, which check their arguments themselves."""
        return self.has_kernel_for(COMPOSED)

    def has_kernel_for(self, key: str) -> bool:
        """Whether the op has a kernel for a dispatch key."""
        name = self.overload.name()  # type: ignore[no-untyped-call]
        return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)

    def _drawn_samples(self) -> Iterable[SampleInput]:
        if self.contract is None:
            return ()
        try:
            drawn = tuple(drawn_samples(self.contract, self.device))
        except NoCallError:
            if self.device == "cpu":
                raise
            # The limits of a kernel for NPUs may be narrower than what is drawn.
            return ()
        return map(self._on_device, drawn)

    def _on_device(self, sample: SampleInput) -> SampleInput:
        resized = sample.resized and self._on_device(sample.resized)
        return replace(Case(self, sample).on(self.device).sample, resized=resized)


def ops_of_plugin(plugin: str, device: str) -> list[Op]:
    """Return the ops of a plugin on a device.

    Raises:
        AssertionError: it is not loaded; the message says why, or which plugins there are.
    """
    found = [record for record in core.plugins() if record.name == plugin]
    if not found:
        names = ", ".join(record.name for record in core.plugins()) or "none"
        raise AssertionError(f"no plugin named {plugin!r} is installed; installed: {names}")
    for record in found:
        if record.status != "loaded":
            raise AssertionError(f"plugin {plugin!r} is {record.status}: {record.reason}")
    return [op_of_plugin(op.name, device) for op in found[0].ops]


def op_of_plugin(name: str, device: str) -> Op:
    """Return an op of a loaded plugin on a device."""
    return Op(
        find_overload(name),
        tuple(core.samples(name, device)),
        core.reference(name),
        core.contract(name),
        device,
    )

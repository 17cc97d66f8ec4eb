"""npu_lightning_indexer_prolog_pto: what the lightning indexer needs of new tokens, in int8.

README.md of the distribution defines the op in PyTorch; ops.toml is its contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Reference, SampleInput, hookimpl

from .ops import *

OP = "npu_lightning_indexer_prolog_pto"


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The torchair converter; called once torchair is there."""
    from . import converter

    return {OP: converter.convert_prolog}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs, by device."""
    from . import samples

    return {OP: samples.prolog_samples}


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """The op in plain PyTorch, and how to compare with it."""
    from . import projection_comparison, reference

    return {
        OP: Reference(
            reference.prolog, projection_comparison.compare, projection_comparison.compare_caches
        )
    }

"""npu_lightning_indexer_pto, the lightning indexer of DeepSeek sparse attention.

README.md of the distribution defines the op in PyTorch, ops.toml says what its arguments are. This
module gives what neither can: sample inputs, a reference with its comparison, a graph converter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Reference, SampleInput, hookimpl

from .functions import *

OP = "npu_lightning_indexer_pto"


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The torchair converter; called once torchair is there."""
    from . import converter

    return {OP: converter.convert_lightning_indexer}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs, by device."""
    from . import samples

    return {OP: samples.lightning_indexer}


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """The op in plain PyTorch, and how to compare with it."""
    from . import comparison, reference

    return {OP: Reference(reference.lightning_indexer, comparison.compare)}

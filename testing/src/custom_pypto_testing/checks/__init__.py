"""The checks of the conformance suite: functions of a Case or an Op that raise AssertionError."""

from __future__ import annotations

from custom_pypto_testing.fuzzing import check_fuzzed

from .author_input import check_has_reference, check_has_samples, left_out
from .autograd import check_gradients, check_second_gradients
from .compilation import check_compiled, check_exported
from .contract import check_drawn, check_refusals
from .devices import check_devices
from .fakes import check_fake, check_symbolic_fake
from .memory import check_memory
from .on_device import (
    OF_NPUS,
    NotCheckedError,
    check_capture,
    check_graph,
    check_npugraph_ex,
    check_repeats,
    check_streams,
    check_symbolic_graph,
)
from .operator import check_operator
from .side_effects import check_aliasing, check_unchanged, check_versions
from .strides import check_strides
from .threads import check_large_calls, check_threads
from .values import check_mutated, check_values
from .written_slices import check_written_slices

__all__ = [
    "OF_NPUS",
    "NotCheckedError",
    "check_aliasing",
    "check_capture",
    "check_compiled",
    "check_devices",
    "check_drawn",
    "check_exported",
    "check_fake",
    "check_fuzzed",
    "check_gradients",
    "check_graph",
    "check_has_reference",
    "check_has_samples",
    "check_large_calls",
    "check_memory",
    "check_mutated",
    "check_npugraph_ex",
    "check_operator",
    "check_refusals",
    "check_repeats",
    "check_second_gradients",
    "check_streams",
    "check_strides",
    "check_symbolic_fake",
    "check_symbolic_graph",
    "check_threads",
    "check_unchanged",
    "check_values",
    "check_versions",
    "check_written_slices",
    "left_out",
]

"""The checks of the conformance suite: functions of a Case or an Op that raise AssertionError."""

from __future__ import annotations

from custom_pypto_testing.fuzzing import check_fuzzed as check_fuzzed

from .author_input import check_has_reference as check_has_reference
from .author_input import check_has_samples as check_has_samples
from .author_input import left_out as left_out
from .compilation import check_compiled as check_compiled
from .compilation import check_exported as check_exported
from .compilation import check_written_slices as check_written_slices
from .contract import check_drawn as check_drawn
from .contract import check_refusals as check_refusals
from .fakes import check_devices as check_devices
from .fakes import check_fake as check_fake
from .fakes import check_symbolic_fake as check_symbolic_fake
from .memory import check_memory as check_memory
from .on_device import NotCheckedError as NotCheckedError
from .on_device import check_capture as check_capture
from .on_device import check_graph as check_graph
from .on_device import check_npugraph_ex as check_npugraph_ex
from .on_device import check_repeats as check_repeats
from .on_device import check_streams as check_streams
from .on_device import check_symbolic_graph as check_symbolic_graph
from .operator import check_gradients as check_gradients
from .operator import check_operator as check_operator
from .operator import check_second_gradients as check_second_gradients
from .operator import left_out_of_opcheck as left_out_of_opcheck
from .side_effects import check_aliasing as check_aliasing
from .side_effects import check_unchanged as check_unchanged
from .side_effects import check_versions as check_versions
from .strides import check_strides as check_strides
from .threads import check_large_calls as check_large_calls
from .threads import check_threads as check_threads
from .values import check_mutated as check_mutated
from .values import check_values as check_values

"""Runs one check of an op of a loaded plugin."""

from __future__ import annotations

from dataclasses import replace

from custom_pypto import core
from custom_pypto_plugin import Reference

from custom_pypto_testing.subject import Op, Subject

from . import compiled, launch, results, streams, timing
from .calls import Note
from .finding import Finding

CHECKS = {
    "launch": launch.check_launch,
    "results": results.check_results,
    "repeats": results.check_repeats,
    "queue": results.check_results,
    "streams": streams.check_streams,
    "capture": streams.check_capture,
    "graph": compiled.check_graph,
    "symbolic graph": compiled.check_symbolic_graph,
    "npugraph_ex": compiled.check_npugraph_ex,
    "allocation": results.check_repeats,
    "executor cache": results.check_repeats,
    "timing": timing.check_timing,
}


def run_check(check: str, plugin: str, op: str, device: str, most: int, note: Note) -> Finding:
    """Run the check on at most `most` calls; `note` is told which call comes next.

    Raises:
        Exception: a call failed, or its results are wrong.
    """
    found = _compare_with_cpu(Subject.of_plugin(plugin).op_on(op, device))
    if check == "results" and found.reference is None:
        return Finding("it has neither a reference nor a kernel for the CPU", applies=False)
    return CHECKS[check](found, most, note)


def _compare_with_cpu(op: Op) -> Op:
    """Return the op; without a reference, its own kernel on the CPU is the reference."""
    [keys] = [each.dispatch_keys for each in core.ops() if each.name == op.name]
    has_kernel = any(key == "CPU" or key.startswith("Composite") for key in keys)
    if op.reference is not None or not has_kernel:
        return op
    reference = Reference(op.overload)
    cases = tuple(replace(case, reference=reference) for case in op.cases)
    return replace(op, reference=reference, cases=cases)

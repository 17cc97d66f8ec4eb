"""Runs one check of an op of a loaded plugin."""

from __future__ import annotations

from custom_pypto_testing.subject import Subject

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
    "timing": timing.check_timing,
}


def run_check(check: str, plugin: str, op: str, device: str, most: int, note: Note) -> Finding:
    """Run the check on at most `most` calls; `note` is told which call comes next.

    Raises:
        Exception: a call failed, or its results are wrong.
    """
    return CHECKS[check](Subject.of_plugin(plugin).op_on(op, device), most, note)

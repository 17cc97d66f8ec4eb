"""Calls in torch.compile with the backends of torch_npu: torchair's graph engine, npugraph_ex."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto import core
from custom_pypto.core import hooks
from custom_pypto.core.loader import start

from custom_pypto_testing.call import Call
from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.values import compare_mutated, compare_returned
from custom_pypto_testing.subject import Op

from .calls import Note, changed, make_calls
from .finding import Finding

_EX = "npugraph_ex"


def check_graph(op: Op, most: int, note: Note) -> Finding:
    """torchair's graphs of fixed sizes."""
    return _check_torchair(op, most, note, dynamic=False)


def check_symbolic_graph(op: Op, most: int, note: Note) -> Finding:
    """torchair's graphs of symbolic sizes, also run at the sizes of `resized`."""
    return _check_torchair(op, most, note, dynamic=True)


def check_npugraph_ex(op: Op, most: int, note: Note) -> Finding:
    """npugraph_ex, which captures the op's own launches."""
    if _EX not in torch._dynamo.list_backends(exclude_tags=None):
        return Finding(f"this torch_npu has no backend {_EX}", applies=False)
    return _check(op, most, note, _EX, dynamic=False)


def _check_torchair(op: Op, most: int, note: Note, *, dynamic: bool) -> Finding:
    given = start().find_owner(op.name).contribution(hooks.CONVERTERS)
    if op.name not in given and not core.contract(op.name).npu.graph:
        text = "ops.toml has no graph line for it, and its plugin no converter"
        return Finding(text, applies=False)
    import torchair

    backend = torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())
    return _check(op, most, note, backend, dynamic=dynamic)


def _check(op: Op, most: int, note: Note, backend: Any, *, dynamic: bool) -> Finding:
    def check(case: Case) -> None:
        function = _compile(case, backend, dynamic=dynamic)
        _compare(function, case)
        # Kept: torchair does not notice an argument that gets the address of an earlier one.
        _kept = _compare(function, changed(case))
        if dynamic and case.sample.resized is not None:
            _compare(function, case.resized)

    calls = make_calls(op, most, note, check)
    return Finding(calls.text, numbers={"refused": calls.refused})


def _compile(case: Case, backend: Any, *, dynamic: bool) -> Any:
    torch.compiler.reset()

    def function(*args: Any, **kwargs: Any) -> Any:
        return case.op(*args, **kwargs)

    return torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)


def _compare(function: Any, case: Case) -> Call:
    call = case.call()
    call.seed()
    returned = function(*call.args, **call.kwargs)
    compare_returned(case, returned, case.expected.returned)
    compare_mutated(case, call.mutable, case.expected.mutated)
    return call

"""Makes recorded calls of ops again, and says what is wrong with their results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from custom_pypto import core
from custom_pypto.core import contract
from custom_pypto.core.call_record import FORMAT, is_drawn
from custom_pypto.core.contracts import bind_arguments
from custom_pypto.core.namespace import find_overload
from custom_pypto_plugin import SampleInput

from .case import Case, describe_arguments
from .checks.values import compare_runs, compare_with_reference, run_of
from .ops_under_test import Op


def replay_calls(lines: Sequence[str], folder: Path, first: int) -> Iterator[dict[str, Any]]:
    """Make the calls in `lines`, of which the first is number `first`; yield what was found.

    That is `call` (the number), `op`, `arguments` on one line, `has_reference`, `problem`, which is
    empty for a call that is right, and `left_out`, which says why a line is no call.
    """
    for number, line in enumerate(lines, first):
        found = {"call": number, "op": "?", "arguments": "", "has_reference": False, "problem": ""}
        found["left_out"] = ""
        try:
            _replay(line, folder, found)
        except AssertionError as error:
            found["problem"] = str(error)
        except Exception as error:
            # Kernels and references may raise anything, and so may a file that was changed.
            found["problem"] = f"{type(error).__name__}: {error}"
        yield found


def _replay(line: str, folder: Path, found: dict[str, Any]) -> None:
    try:
        call = json.loads(line)
    except ValueError as error:
        found["left_out"] = f"line {found['call'] + 1} is no whole line of JSON: {error}"
        return
    if "ended" in call:
        found["left_out"] = f"process {call['process']} kept no further calls: {call['ended']}"
        return
    if call["format"] != FORMAT:
        raise AssertionError(
            f"the call is of form {call['format']}, this core reads form {FORMAT}; record it again"
        )
    found["op"] = op = call["op"]
    try:
        overload = find_overload(op)
    except AttributeError as error:
        raise AssertionError(str(error)) from None
    if str(overload._schema) != call["schema"]:
        raise AssertionError(
            f"the op's schema is {overload._schema}, the call was recorded with {call['schema']};"
            " install the version of then, or record it again"
        )
    tensors = None
    if "tensors" in call:
        tensors = torch.load(folder / Path(call["tensors"]).name, weights_only=True)
    generator = torch.Generator().manual_seed(found["call"])
    args = decode(call["args"], tensors, generator)
    kwargs = {name: decode(each, tensors, generator) for name, each in call["kwargs"].items()}
    found["arguments"] = describe_arguments(bind_arguments(contract(op), args, kwargs))
    case = Case(Op(overload, reference=core.reference(op)), SampleInput(tuple(args), kwargs))
    with torch.no_grad():
        first, second = (run_of(case.copy()) for _ in range(2))
        compare_runs(case, second, first, "when the call is repeated")
        if case.op.reference is not None:
            found["has_reference"] = True
            compare_with_reference(case, first)


def decode(value: Any, tensors: Sequence[torch.Tensor] | None, generator: torch.Generator) -> Any:
    """Return the argument of a call that core kept as `value`, on the CPU.

    `generator` draws values that were not kept; integers that were not kept are 0.
    """
    if isinstance(value, list):
        return [decode(each, tensors, generator) for each in value]
    if not isinstance(value, dict):
        return value
    [(kind, given)] = value.items()
    if kind == "dtype":
        return getattr(torch, given)
    if kind == "device":
        return torch.device(given)
    dtype, shape = getattr(torch, given["dtype"]), given["shape"]
    if tensors is not None:
        values = tensors[given["saved"]]
    elif "integers" in given:
        values = torch.tensor(given["integers"], dtype=dtype, device="cpu").reshape(shape)
    elif is_drawn(dtype):
        values = torch.randn(shape, generator=generator, device="cpu").to(dtype)
    else:
        values = torch.zeros(shape, dtype=dtype, device="cpu")
    return _with_strides(values, given["strides"])


def _with_strides(values: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return a tensor with these values and strides; contiguous if elements overlapped."""
    # Of a dimension that expand() made, one element is in memory.
    dims = zip(values.shape, strides, strict=True)
    shape = [min(size, 1) if stride == 0 else size for size, stride in dims]
    made = torch.empty_strided(shape, strides, dtype=values.dtype, device="cpu")
    try:
        made.copy_(values[tuple(map(slice, shape))])
    except RuntimeError:
        return values.contiguous()
    return made.expand(values.shape)

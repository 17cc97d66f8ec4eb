"""Calls an imported op, and torch_npu's own, with the same arguments; in a simulated process."""

import ctypes
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch_npu
from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_testing.drawn_samples import drawn_calls

from op_plugin import INCOMPARABLE

_TRIES = 60

Given = Mapping[str, Any]


def compare(plugin: str, library: str, name: str, kernel: str) -> str:
    """Return what differs, "" where both pass the same.

    Most random calls are refused by torch_npu's op, which computes sizes: the first that it takes
    counts. Where it takes none, or is of an older file of op-plugin, the text begins with
    `INCOMPARABLE`.
    """
    opened = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    error = ctypes.create_string_buffer(4096)
    assert opened.custom_pypto_register_v1(error, 4096) == 0, error.value
    [contract] = (each for each in ops_file.read(Path(plugin, "ops.toml")).ops if each.name == name)
    ours, theirs = _find(name, "custom_pypto"), _find(name, "aten", "npu")
    problem = "torch_npu has no such op"
    for given in _drawn(contract) if theirs is not None else ():
        try:
            expected = _launches(theirs, given, kernel)
        except Exception as refusal:
            problem = f"torch_npu refuses each call: {' '.join(str(refusal).split())}"
            continue
        if not expected:
            problem = f"torch_npu launches no {kernel}"
            continue
        found = _launches(ours, given, kernel)
        return "" if found == expected else f"passed {found}, by torch_npu {expected}"
    return f"{INCOMPARABLE}{problem}"


def _find(name: str, *namespaces: str) -> Any:
    base, _, overload = name.partition(".")
    for namespace in namespaces:
        packet = getattr(getattr(torch.ops, namespace), base, None)
        op = getattr(packet, overload or "default", None)
        if op is not None:
            return op
    return None


def _drawn(contract: OpContract) -> Iterator[Given]:
    for given in drawn_calls(contract, _TRIES, device="npu"):
        tensors = [each for each in given.values() if isinstance(each, torch.Tensor)]
        # torch_npu launches nothing for an empty tensor.
        if all(each.numel() for each in tensors):
            yield {name: _on_npu(contract, name, each) for name, each in given.items()}


def _on_npu(contract: OpContract, name: str, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to("npu")
    # The one list whose length torch checks: `bool[2]` is an array of two.
    length = re.search(rf"bool\[(\d+)\] {name}\b", contract.schema.text)
    return value if length is None else [number % 2 == 0 for number in range(int(length[1]))]


def _launches(op: Any, given: Given, kernel: str) -> list[Any]:
    """Return what a call passes to a kernel, with names of tensors instead of addresses."""
    record = Path(os.environ["RECORDED_LAUNCHES"])
    record.write_text("", encoding="utf-8")
    # By position: torch_npu's op may have another name for an argument.
    values = list(zip(op._schema.arguments, given.values(), strict=True))
    with torch.no_grad():
        result = op(
            *(value for argument, value in values if not argument.kwarg_only),
            **{argument.name: value for argument, value in values if argument.kwarg_only},
        )
    torch_npu.npu.synchronize()
    names = {each.data_ptr(): name for name, each in given.items() if torch.is_tensor(each)}
    for number, each in enumerate(result if isinstance(result, tuple) else (result,)):
        if torch.is_tensor(each):
            names.setdefault(each.data_ptr(), f"result {number}")
    lines = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    return [[_named(each, names) for each in line[1:]] for line in lines if line[0] == kernel]


def _named(value: list[Any], names: Mapping[int, str]) -> list[Any]:
    if value[0] == "tensors":
        return [_named(each, names) for each in value[1:]]
    if value[0] == "tensor":
        return [names.get(value[1], "another tensor"), *value[2:]]
    return value

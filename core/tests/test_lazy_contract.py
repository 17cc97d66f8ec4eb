"""Contracts in manifests that say anything at all: a call names the plugin and the op."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from custom_pypto.core.contracts.kernels import checked_kernel, fake_kernel
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto_contract import manifest
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.manifest import EMPTY_CONTRACT
from manifests import contract_of

OPS = """
[scale]
schema = "scale(Tensor x, Tensor? y, int k=1, str layout='A') -> Tensor"
tensors.x = { shape = { layout.A = "M N", layout.B = "N M" }, dtype = "float32 bfloat16" }
tensors.y = { shape = "N", dtype = "=x", allowed_when.layout = ["A"] }
scalars.layout = "in ('A', 'B')"
rules = [{ argument = "k", check = "k > 0 and N % k == 0", message = "got {k}" }]
outputs.out = { shape = "M N//16", dtype = "=x" }
npu.limits = [{ argument = "k", check = "k < 9" }]
"""
VALUES = (None, True, -1, 2**70, "", "x", "((", "N*", "{", "1/0", [], {}, [[1]], {"a": 1}, "\0")
OWNER = "the plugin 'first' (acme-first 1.0)"


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every table or list inside, and every key of it."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, key
        if isinstance(value, dict | list):
            yield from places(value)


def outcome(function: Callable[..., Any], *args: object) -> str:
    """What becomes of a call: '' or a text that names the plugin, or the argument."""
    try:
        function(*args)
    except ContractError as error:
        return str(error)
    except RuntimeError as error:
        # A refusal, or torch's word on a size.
        return f"scale: argument, {error}"
    return ""


def test_whatever_a_contract_says_the_error_of_a_call_names_plugin_and_op() -> None:
    op = contract_of(OPS)
    good = {key: op.data[key] for key in EMPTY_CONTRACT}
    x, y = torch.empty(3, 32, device="meta"), torch.empty(32, device="meta")
    unreadable = set()
    for index in range(len(list(places(good)))):
        for value in VALUES:
            data = copy.deepcopy(good)
            holder, key = list(places(data))[index]
            holder[key] = value
            lazy = LazyContract(manifest.make_op({"schema": op.schema.text, **data}), OWNER)
            outcomes = [
                outcome(fake_kernel(lazy), x, y),
                outcome(fake_kernel(lazy), x, None, 2, "B"),
                outcome(checked_kernel(lazy, lambda x, *others: x), x, y),
            ]
            for text in filter(None, outcomes):
                if not text.startswith("scale: argument"):
                    assert text.startswith(f"scale: its contract in the manifest of {OWNER} cannot")
                    assert text.endswith("; reinstall the plugin, or build it again")
                    assert text.isprintable()
                    unreadable.add(key)
    assert {"tensors", "rules", "outputs", "shape", "dtype", "check", "allowed_when"} <= unreadable

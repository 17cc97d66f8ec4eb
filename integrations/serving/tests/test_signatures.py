"""What is served takes every argument that the published op takes, in the same order."""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any

import custom_pypto_serving
import pytest
import torch
from calls import CALLS
from published import SIGNATURES, signature


def of(function: Any) -> inspect.Signature:
    """The signature of a function, or of an op by its schema."""
    if not isinstance(function, torch._ops.OpOverloadPacket):
        return inspect.signature(function)
    parts = []
    for argument in function.default._schema.arguments:
        if argument.kwarg_only and "*" not in parts:
            parts.append("*")
        default = f"={argument.default_value!r}" if argument.has_default_value() else ""
        parts.append(argument.name + default)
    return signature(", ".join(parts))


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_the_signature_is_the_published_one(name: str) -> None:
    theirs = [
        each.replace(annotation=each.empty)
        for each in signature(SIGNATURES[name]).parameters.values()
    ]
    function = attrgetter(name.rpartition(".")[2])(custom_pypto_serving)
    ours = [each.replace(annotation=each.empty) for each in of(function).parameters.values()]
    assert ours[: len(theirs)] == theirs
    assert all(each.default is not each.empty for each in ours[len(theirs) :])


def test_every_published_signature_is_of_a_call() -> None:
    assert SIGNATURES.keys() <= {call.name for call in CALLS}

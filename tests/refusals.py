"""An assertion that an op refuses a call, which the tests of plugins share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor


def assert_refused(
    op: str, arguments: Mapping[str, Any], name: str, text: str, *, is_of_values: bool = False
) -> None:
    """Check that an op refuses a call and leaves its arguments unchanged.

    Args:
        name: the argument that the error names.
        text: a part of the rest of the error.
        is_of_values: whether the error depends on values. Otherwise the fake kernel, which has
            none, must give the same error.
    """
    function = getattr(torch.ops.custom_pypto, op)
    tensors = {name: each for name, each in arguments.items() if isinstance(each, Tensor)}
    before = {name: each.clone() for name, each in tensors.items()}
    message = rf"^{op}: argument '{name}' .*{re.escape(text)}"
    with pytest.raises(RuntimeError, match=message) as of_kernel:
        function(**arguments)
    for given, each in tensors.items():
        assert torch.equal(each, before[given]), f"argument {given!r} was written"
    if is_of_values:
        return
    with pytest.raises(RuntimeError) as of_fake:
        function(**on_meta(arguments))
    assert first_line(of_fake.value) == first_line(of_kernel.value)


def on_meta(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with tensors that have no memory, as an op's fake kernel gets them."""
    return {
        name: torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="meta")
        if isinstance(each, Tensor)
        else each
        for name, each in arguments.items()
    }


def first_line(error: BaseException) -> str:
    """An error's message without the trace of C++ functions."""
    return str(error).partition("\n")[0]

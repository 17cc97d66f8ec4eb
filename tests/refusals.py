"""An assertion that an op refuses a call, which the tests of plugins share."""

import re
from collections.abc import Mapping
from typing import Any

import torch
from custom_pypto_testing import Op
from custom_pypto_testing.case import Case, refusal_of
from custom_pypto_testing.meta_tensors import Twins


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
    call = Case.of(Op(getattr(torch.ops.custom_pypto, op).default), arguments)
    before = {name: each.clone() for name, each in call.tensors.items()}
    refusal = refusal_of(call.run)
    assert re.match(rf"{op}: argument '{name}' .*{re.escape(text)}", refusal), refusal
    for given, each in call.tensors.items():
        assert torch.equal(each, before[given]), f"argument {given!r} was written"
    if not is_of_values:
        assert refusal_of(call.map(Twins()).run) == refusal

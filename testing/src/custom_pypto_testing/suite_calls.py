"""The calls that the conformance suite makes of an op on the CPU, without making them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from custom_pypto.core.call_text import describe_arguments
from custom_pypto.core.contracts import bind_arguments

from .drawn_samples import drawn_calls
from .ops_under_test import ops_of_plugin
from .sample_generator import Arguments


def suite_calls(
    plugin: str, op: str, count: int | None, seed: str | None
) -> Iterator[dict[str, Any]]:
    """Yield each call: the samples, then random calls that the contract allows.

    A call has a `name`, its `arguments` as JSON, and as `text` on one line. `count` and `seed` of
    the random calls are those of the suite where they are None.

    Raises:
        AssertionError: the plugin is not loaded, or two of its samples have one name.
        DrawingError: nothing that the contract allows was found.
    """
    [found] = [each for each in ops_of_plugin(plugin, "cpu") if each.name == op]
    assert found.contract is not None
    for sample in (case.sample for case in found.cases):
        yield _call(sample.name, bind_arguments(found.contract, sample.args, sample.kwargs))
        if sample.resized is not None:
            other = sample.resized
            yield _call(
                f"{sample.name}, resized", bind_arguments(found.contract, other.args, other.kwargs)
            )
    for number, given in enumerate(drawn_calls(found.contract, count, seed)):
        yield _call(f"random-{number}", given)


def _call(name: str, given: Arguments) -> dict[str, Any]:
    arguments = {each: _plain(value) for each, value in given.items()}
    return {"name": name, "arguments": arguments, "text": describe_arguments(given)}


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"dtype": dtype, "shape": [*value.shape], "strides": [*value.stride()]}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)

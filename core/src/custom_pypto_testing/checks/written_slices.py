"""Written arguments that are slices of larger tensors, in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from custom_pypto_testing.call import Call
from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_same_bits

_Slice = tuple[str, Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]


def check_written_slices(case: Case, backend: str) -> None:
    """Compiled with symbolic sizes, the op writes the slices of its call, and nothing beside them.

    Each written argument is one of three layers; then the middle of a tensor that begins inside its
    memory. The code also runs `resized`, where the slices begin elsewhere.
    """
    written = {name.partition("[")[0] for name in case.call().mutable}
    if not written:
        return
    names = [argument.name for argument in case.op._schema.arguments]
    places = {names.index(name) for name in written} | written
    for what, enlarge, cut in _SLICES:

        def function(
            *args: Any, _cut: Callable[[torch.Tensor], torch.Tensor] = cut, **kwargs: Any
        ) -> Any:
            def given(place: object, value: Any) -> Any:
                if isinstance(value, list | tuple):
                    return [given(place, each) for each in value]
                is_whole = place in places and value is not None and value.dim() > 0
                return _cut(value) if is_whole else value

            return case.op(
                *[given(place, value) for place, value in enumerate(args)],
                **{name: given(name, value) for name, value in kwargs.items()},
            )

        torch.compiler.reset()
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
        for make_call in (case.call, case.resized_call):
            expected, actual = (
                _memory_after(make_call(), run, enlarge) for run in (function, compiled)
            )
            for name, memory in actual.items():
                when = f"as {what}, compiled with {backend} and symbolic sizes,"
                assert_same_bits(f"{case.name}: argument '{name}'", memory, expected[name], when)


def _memory_after(
    call: Call, run: Callable[..., Any], enlarge: Callable[[torch.Tensor], torch.Tensor]
) -> dict[str, torch.Tensor]:
    wholes = {name: enlarge(tensor) for name, tensor in call.mutable.items() if tensor.dim()}
    call = call.replace(wholes)
    run(*call.args, **call.kwargs)
    return {name: whole if whole._base is None else whole._base for name, whole in wholes.items()}


def _middle(whole: torch.Tensor) -> torch.Tensor:
    rows = whole.shape[0] // 3
    return whole[rows : 2 * rows]


_SLICES: tuple[_Slice, ...] = (
    ("one of three layers", lambda each: torch.stack([each] * 3), lambda whole: whole[1]),
    (
        "a part of a tensor that begins inside its memory",
        lambda each: torch.cat([each] * 4)[each.shape[0] :],
        _middle,
    ),
)

"""Written arguments that are slices of larger tensors, in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_same_bits

_Enlarge = Callable[[list[torch.Tensor]], torch.Tensor]


def check_written_slices(case: Case) -> None:
    """Compiled with symbolic sizes, the op writes the slices of its call, and nothing beside them.

    The code also runs `resized`, where the slices begin elsewhere.
    """
    written = {name.partition("[")[0] for name in case.copy().mutable}
    if not written:
        return
    names = [argument.name for argument in case.op.schema.arguments]
    places = {names.index(name) for name in written} | written
    for backend, what, enlarge, cut in _SLICES:
        if backend == "inductor" and not case.is_on_cpu:
            continue

        def function(*args: Any, _cut: Any = cut, **kwargs: Any) -> Any:
            def given(place: object, value: Any) -> Any:
                if isinstance(value, list | tuple):
                    return [given(place, each) for each in value]
                is_whole = place in places and value is not None and value.dim() > 0
                return _cut(value) if is_whole else value

            return case.op.overload(
                *[given(place, value) for place, value in enumerate(args)],
                **{name: given(name, value) for name, value in kwargs.items()},
            )

        torch.compiler.reset()
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
        for make_call in (case.copy, case.resized.copy):
            expected, actual = (
                _memory_after(make_call(), run, enlarge) for run in (function, compiled)
            )
            for name, memory in actual.items():
                when = f"as {what}, compiled with {backend} and symbolic sizes,"
                assert_same_bits(f"{case.name}: argument '{name}'", memory, expected[name], when)


def _memory_after(
    call: Case, run: Callable[..., Any], enlarge: _Enlarge
) -> dict[str, torch.Tensor]:
    wholes = {}
    for name, tensor in call.mutable.items():
        if tensor.dim():
            # The others have other values, so that a wrong place shows where the op reads, too.
            other = torch.ones_like(tensor)
            wholes[name] = enlarge([other, tensor, other])
    call = call.replace(wholes)
    run(*call.args, **call.kwargs)
    return {name: whole if whole._base is None else whole._base for name, whole in wholes.items()}


# Inductor makes the slices anew by their offsets. Elsewhere the op writes copies.
_SLICES: tuple[tuple[str, str, _Enlarge, Callable[[torch.Tensor], torch.Tensor]], ...] = (
    ("inductor", "one of three layers", torch.stack, lambda whole: whole[1]),
    (
        "aot_eager",
        "a part of a tensor that begins inside its memory",
        lambda three: torch.cat([three[0], *three])[len(three[0]) :],
        lambda whole: whole.unflatten(0, (3, -1))[1],  # type: ignore[no-untyped-call]
    ),
)

"""Fake (Meta) kernels against real ones, and calls with arguments on several devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
    SymbolicContext,
)

from custom_pypto_testing.case import Case
from custom_pypto_testing.meta_tensors import Twins, relevant_strides
from custom_pypto_testing.outputs import named_arguments, tensor_outputs

Properties = dict[str, object]

_REMEDY = (
    "; outputs are contiguous unless ops.toml says `like`, or a fake of your own says otherwise:"
    " have the kernel return them so, as by .contiguous()"
)
"""Advice where the fake's output is contiguous and the kernel's is not."""


def check_fake(case: Case) -> None:
    """The fake's outputs have the shape, dtype, strides and device of the kernel's."""
    compare_fake(case, case.copy().run())


def compare_fake(case: Case, returned: Any) -> None:
    """Compare what the kernel returned with the fake's outputs."""
    fake = {n: _properties(t) for n, t in tensor_outputs(case.copy().run_fake()).items()}
    _assert_same(case, fake, tensor_outputs(returned), "")


def compare_fake_on_meta(case: Case, call: Case, returned: Any) -> None:
    """Compare what the kernel returned for the arguments of `call` with the fake's outputs.

    The fake runs on meta, so that devices are not compared. An op that returns nothing may be
    without a fake: FakeTensorMode needs none.
    """
    if not tensor_outputs(returned) and not case.op.has_kernel_for("Meta"):
        return
    fake = {n: _properties(t) for n, t in tensor_outputs(call.map(Twins()).run()).items()}
    for each in fake.values():
        del each["device"]
    _assert_same(case, fake, tensor_outputs(returned), "")


def check_symbolic_fake(case: Case) -> None:
    """The same with symbolic sizes: for the sample, and for its `resized` if it has one."""
    environment = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=environment)

    def symbolic(name: str, tensor: torch.Tensor) -> torch.Tensor:
        context: SymbolicContext = StatelessSymbolicContext(
            dynamic_sizes=[DimDynamic.DYNAMIC] * tensor.dim()
        )
        source = ConstantSource(f"argument_{name}".replace("[", "_").replace("]", ""))
        return mode.from_tensor(tensor, source=source, symbolic_context=context)

    call = case.copy().map(symbolic)
    symbols = {name: _expressions(t.shape) for name, t in call.tensors.items()}
    strides = {name: _expressions(t.stride()) for name, t in call.tensors.items()}
    with mode:
        fake = tensor_outputs(call.run())
    real_calls = {"": case.copy()}
    if case.sample.resized is not None:
        _assert_not_specialized(case, environment, symbols)
        real_calls["at the sizes of 'resized', "] = case.resized.copy()
    for when, real in real_calls.items():
        values = _bindings(symbols, {n: t.shape for n, t in real.tensors.items()})
        values |= _bindings(strides, {n: t.stride() for n, t in real.tensors.items()})
        properties = {n: _properties(t, environment, values) for n, t in fake.items()}
        _assert_same(case, properties, tensor_outputs(real.run()), f"with symbolic sizes, {when}")


def check_devices(case: Case) -> None:
    """With one tensor on meta and the others elsewhere, the op returns nothing unwritten.

    Each tensor argument in turn is moved to meta. torch then runs the fake, which computes nothing.
    An output or a mutated argument on another device is then unwritten memory. So the op must raise
    an error, or return and mutate tensors on meta only; in FakeTensorMode too.
    """
    call = case.copy()
    if len(call.tensors) < 2:
        return
    for name, tensor in call.tensors.items():
        mixed = call.replace({name: tensor.to("meta")})
        where = f"{case.name} with argument '{name}' on meta"
        _expect_meta(mixed, mixed.run, f"{where}: the op")
        _expect_meta(mixed, mixed.run_fake, f"{where} in FakeTensorMode: the op")


def _expect_meta(mixed: Case, run: Callable[[], Any], which: str) -> None:
    try:
        outputs = tensor_outputs(run())
    except Exception:
        # Any type of error will do.
        return
    for name, tensor in {**outputs, **named_arguments(mixed.mutable)}.items():
        if not tensor.is_meta:
            raise AssertionError(
                f"{which} raises no error, and {name} is on {tensor.device}, where nothing was"
                " written: torch runs the fake as soon as one argument is on meta. Let the fake"
                " compare the devices of its arguments, as the kernel does, and raise an error that"
                " names the one that differs"
            )


def _assert_same(
    case: Case, fake: Mapping[str, Properties], real: Mapping[str, torch.Tensor], when: str
) -> None:
    if list(fake) != list(real):
        raise AssertionError(
            f"{case.name}: {when}the fake returns {list(fake)}, the kernel {list(real)}"
        )
    for name, tensor in real.items():
        for what, value in _properties(tensor).items():
            if what in fake[name] and fake[name][what] != value:
                contiguous = torch.empty(tensor.shape, device="meta")
                is_contiguous = fake[name]["strides"] == _properties(contiguous)["strides"]
                remedy = _REMEDY if what == "strides" and is_contiguous else ""
                raise AssertionError(
                    f"{case.name}: {when}the {what} of {name} is {fake[name][what]} by the fake,"
                    f" but {value} by the kernel{remedy}"
                )


def _assert_not_specialized(
    case: Case, environment: ShapeEnv, symbols: Mapping[str, Sequence[sympy.Expr]]
) -> None:
    for name, dims in case.dynamic_dims.items():
        for dim in dims:
            expression = environment.replace(symbols[name][dim])
            if symbols[name][dim].free_symbols and expression.is_number:
                raise AssertionError(
                    f"{case.name}: the fake fixes dimension {dim} of argument '{name}' to"
                    f" {expression}, but 'resized' says that it may change; write the fake's shapes"
                    " in terms of tensor.shape, without int() and without comparing to numbers"
                )


def _properties(
    tensor: torch.Tensor,
    environment: ShapeEnv | None = None,
    values: Mapping[sympy.Symbol, int] | None = None,
) -> Properties:
    def numbers(sizes: Sequence[Any]) -> list[int]:
        expressions = _expressions(sizes)
        if environment is not None:
            expressions = [environment.replace(e).xreplace(values or {}) for e in expressions]
        return [int(each) for each in expressions]

    return {
        "shape": numbers(tensor.shape),
        "dtype": tensor.dtype,
        "strides": [*relevant_strides(numbers(tensor.stride()), numbers(tensor.shape))],
        "device": tensor.device,
    }


def _expressions(sizes: Sequence[Any]) -> list[sympy.Expr]:
    return [
        size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size) for size in sizes
    ]


def _bindings(
    symbols: Mapping[str, Sequence[sympy.Expr]], sizes: Mapping[str, Sequence[int]]
) -> dict[sympy.Symbol, int]:
    return {
        symbol: sympy.Integer(size)
        for name, expressions in symbols.items()
        for symbol, size in zip(expressions, sizes[name], strict=True)
        if symbol.is_Symbol
    }

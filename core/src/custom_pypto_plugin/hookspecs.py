"""The hooks by which a plugin contributes Python functions and records.

A plugin's module implements any of them as a function decorated with `hookimpl`. Each returns a
mapping whose keys are names of ops of that plugin, as its schemas say them (``add_custom``, or with
an overload ``foo.bar``). If a hook that is called while the plugin loads raises, or returns a key
that is no op of the plugin or a value of the wrong type, the plugin fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pluggy

from custom_pypto_plugin.contributions import Autograd, Reference, SampleInput

PROJECT = "custom_pypto"

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin's module as the implementation of the hook of the same name."""

_hookspec = pluggy.HookspecMarker(PROJECT)


@_hookspec(firstresult=True)
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:  # type: ignore[empty-body]
    """Return each op's kernels that are Python functions, by dispatch key.

    The keys are torch's, such as ``CPU``, ``PrivateUse1`` (an NPU) and
    ``CompositeExplicitAutograd`` (every device). A kernel takes the op's arguments under the names
    and with the defaults of its schema. A plugin without a library gives every kernel so, another
    those that its library does not have. Called once, while the plugin loads.
    """


@_hookspec(firstresult=True)
def custom_pypto_fakes(  # type: ignore[empty-body]
    generated: Mapping[str, Callable[..., Any]],
) -> Mapping[str, Callable[..., Any]]:
    """Return each op's fake kernel: the function that gives shape, dtype and device of its result.

    It takes the op's arguments, and works with symbolic sizes; it is registered by
    `torch.library.register_fake`. ``generated`` has the fake kernels that core made from the
    contract, by op; an implementation need not take it. Called once, while the plugin loads.
    """


@_hookspec(firstresult=True)
def custom_pypto_autograd() -> Mapping[str, Autograd]:  # type: ignore[empty-body]
    """Return the derivative of each op that has one.

    It is registered by `torch.library.register_autograd`; torch allows that for ops which mutate
    none of their arguments. Called once, while the plugin loads.
    """


@_hookspec(firstresult=True)
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Return each op's converter for torchair's graph engine.

    It is registered by `torchair.register_fx_node_ge_converter`. Called once, when torchair has
    been imported, and never without torchair: import it, and the converters, inside the hook. A
    failure gives one warning and leaves the plugin loaded, for eager mode needs no converters.
    """


@_hookspec(firstresult=True)
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:  # type: ignore[empty-body]
    """Return, for each op, the function that makes its sample inputs on the device it is given.

    The samples are the same on each call: random values come from a seeded generator. Called only
    by those who check the op, through `custom_pypto.core.samples`.
    """


@_hookspec(firstresult=True)
def custom_pypto_references() -> Mapping[str, Reference]:  # type: ignore[empty-body]
    """Return each op's independent implementation, against which its kernels are checked.

    Called only by those who check the op, through `custom_pypto.core.reference`.
    """

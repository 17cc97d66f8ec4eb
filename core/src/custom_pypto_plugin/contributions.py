"""The records that hooks return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Autograd:
    """The derivative of an op, as `torch.library.register_autograd` takes it.

    ``backward(ctx, *grads)`` returns a gradient, or None, for each argument of the op.
    ``setup_context(ctx, inputs, output)`` keeps on ``ctx`` what the backward needs; None when it
    needs nothing. ``is_once_differentiable`` says that the backward has no derivative itself. A
    second derivative is then an error that names the op, instead of another error or zeros.
    """

    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None = None
    is_once_differentiable: bool = False


@dataclass(frozen=True, slots=True)
class SampleInput:
    """Arguments that an op must be right on; `name` says in a word or two what is special.

    ``resized`` is the same call with tensors of other sizes and nothing else changed: a test of
    dynamic shapes compiles the op for the one and runs the other.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    resized: SampleInput | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """An independent implementation of an op, against which its kernels are checked.

    ``function(*args, **kwargs)`` takes the op's arguments, computes with plain torch ops in fp32 or
    fp64, mutates what the op mutates and returns what the op returns.
    ``compare(actual, expected, sample)`` raises AssertionError when a result is wrong; None
    stands for the comparison of `custom_pypto_testing`, whose tolerance depends on the dtype.
    ``compare_mutated(actual, expected, sample)`` does the same for the arguments that the op
    mutates, given by name.
    """

    function: Callable[..., Any]
    compare: Callable[[Any, Any, SampleInput], None] | None = None
    compare_mutated: Callable[[Mapping[str, Any], Mapping[str, Any], SampleInput], None] | None = (
        None
    )

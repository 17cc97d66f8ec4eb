"""What can go wrong, each with what to do about it."""

from __future__ import annotations

from examples.errors import ExampleError


class MissingError(ExampleError):
    """A package that the example needs is not installed."""


class LossError(ExampleError):
    """A loss did not fall."""

"""Errors of this example; those that all examples have are in examples/errors.py."""

from __future__ import annotations

from examples.errors import ExampleError


class LossError(ExampleError):
    """A loss did not fall."""

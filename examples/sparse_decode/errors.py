"""Errors of this example; those that all examples have are in examples/errors.py."""

from __future__ import annotations

from examples.errors import ExampleError


class TextError(ExampleError):
    """The text cannot be used."""


class StepError(ExampleError):
    """A decode step is outside the tolerance; the message says which and by how much."""

"""Errors of this example; those that all examples have are in examples/errors.py."""

from __future__ import annotations

from examples.errors import ExampleError


class MissingError(ExampleError):
    """Something is not installed; the message says what."""


class TokenError(ExampleError):
    """Two attention implementations generated different tokens."""

"""The errors of this example; those of wheels and pictures are sparse_decode's."""

from __future__ import annotations

from examples.sparse_decode.errors import ExampleError


class MissingError(ExampleError):
    """Something is not installed; the message says what."""


class TokenError(ExampleError):
    """The ways to attend generated different tokens."""

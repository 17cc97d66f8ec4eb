"""The error that ends an example with one readable message."""

from __future__ import annotations


class ExampleError(Exception):
    """Something that the user can act on; the message says what and how."""

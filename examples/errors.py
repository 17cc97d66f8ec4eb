"""Errors that end an example with one readable message."""

from __future__ import annotations


class ExampleError(Exception):
    """Something that the user can act on; the message says what and how."""


class OutputError(ExampleError):
    """The picture cannot be written where it should go."""


class MissingError(ExampleError):
    """Something that the example needs is not installed; the message says what."""


class WheelError(ExampleError):
    """A wheel could not be built or installed; the message holds the tool's output."""

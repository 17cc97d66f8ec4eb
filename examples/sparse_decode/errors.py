"""The errors that end the example with one readable message."""

from __future__ import annotations


class ExampleError(Exception):
    """Something that the user can act on; the message says what and how."""


class TextError(ExampleError):
    """The text cannot be used."""


class OutputError(ExampleError):
    """The picture cannot be written where it should go."""


class WheelError(ExampleError):
    """A wheel could not be built or installed; the message holds the tool's output."""


class StepError(ExampleError):
    """A decode step is outside the tolerance; the message says which and by how much."""

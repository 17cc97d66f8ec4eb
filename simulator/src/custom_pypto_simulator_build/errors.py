"""What the build raises."""

from __future__ import annotations


class BuildError(RuntimeError):
    """A library could not be built; the text says which, and shows the compiler's output."""

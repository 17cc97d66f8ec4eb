"""The error of a plugin that cannot be built."""

from __future__ import annotations


class BuildError(Exception):
    """The plugin cannot be built; the text is for its author and says what to do."""

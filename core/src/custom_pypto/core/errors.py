"""The errors, the warnings and the log of core."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import traceback
import warnings
from pathlib import Path

import pluggy
from custom_pypto_discovery.printable import escape_lines, shorten

logger = logging.getLogger("custom_pypto")
"""Reports each step of loading at level DEBUG."""

# With the separator, because packages of plugins begin with the same letters.
_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_INSIDE = (
    "<frozen",
    contextlib.__file__,
    *(str(Path(file).parent) for file in (__file__, importlib.__file__, pluggy.__file__)),
)


class PluginError(RuntimeError):
    """A plugin cannot be used; the text names it, says why, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(escape_lines(text))


class PluginWarning(UserWarning):
    """Something about plugins is not as the user expects; everything else works."""

    def __init__(self, text: str) -> None:
        super().__init__(escape_lines(text))


class PluginRejectedWarning(PluginWarning):
    """A plugin was not loaded because of its files; the text says why."""


class PluginFailedWarning(PluginWarning):
    """A plugin failed while it was loaded, and was taken back; the text says why."""


class LoadError(Exception):
    """A step of loading a plugin failed; the text is the reason to show."""

    def __init__(self, text: str) -> None:
        """`text` may be long: it is shortened."""
        super().__init__(shorten(text))


def warn(text: str, category: type[PluginWarning] = PluginWarning) -> None:
    """Warn at the line of the user's code that called core.

    Raises:
        PluginWarning: warnings are errors.
    """
    warnings.warn(text, category, stacklevel=_distance() + 1)


def warn_or_log(text: str) -> None:
    """Do the same where nothing may be raised: if warnings are errors, log the text."""
    try:
        warn(text)
    except PluginWarning:
        logger.error("%s", escape_lines(text))


def describe_failure(error: BaseException) -> str:
    """Return the reason to show for `error`, which ended a step of loading a plugin."""
    return str(error) if isinstance(error, LoadError) else shorten(describe_error(error))


def describe_error(error: BaseException) -> str:
    """Return the type and text of `error`, and the line of Python outside core that raised it."""
    try:
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        # SystemExit would end the user's program.
        text = f"{type(error).__name__}, whose text cannot be read: {type(another).__name__}"
    if isinstance(error, SyntaxError):
        # Its text names the line, which never ran.
        return text
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_INSIDE)]
    return f"{text} ({outside[-1].filename}, line {outside[-1].lineno})" if outside else text


def _distance() -> int:
    """Return how many frames the caller of `warn` is away from code outside this package."""
    frame = sys._getframe(1)
    distance = 0
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        # `warnings` does not count the frames of the import machinery either.
        if "importlib" not in name or "_bootstrap" not in name:
            if not name.startswith(_PACKAGE):
                break
            distance += 1
        frame = frame.f_back
    return distance

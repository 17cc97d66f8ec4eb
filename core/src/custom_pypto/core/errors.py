"""What core raises and warns of."""

from __future__ import annotations

import traceback


class PluginError(RuntimeError):
    """A plugin cannot be used; the text names it, says why, and what to do."""


class PluginWarning(UserWarning):
    """Something about plugins is not as the user will expect; everything else works."""


class PluginQuarantinedWarning(PluginWarning):
    """A plugin was not loaded because it was refused or failed; the text says why."""


class LoadError(Exception):
    """A step of loading a plugin failed; the text is the reason to show."""


def reason(error: BaseException) -> str:
    """Return the reason to show for `error`, which ended a step of loading a plugin."""
    return str(error) if isinstance(error, LoadError) else described(error)


def described(error: BaseException) -> str:
    """Return what `error` is, says, and which line of Python raised it."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen")
    ]
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else text

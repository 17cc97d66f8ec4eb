"""Takes out of a text what tells who runs the command, and where."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any


def hide(value: Any) -> Any:
    """Return a text, or plain data with texts, without the user, the host and the home folder."""
    if isinstance(value, str):
        for pattern, instead in _patterns():
            value = pattern.sub(instead, value)
        return value
    if isinstance(value, dict):
        return {hide(name): hide(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [hide(each) for each in value]
    return value


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(_find_patterns())


def _find_patterns() -> Iterator[tuple[re.Pattern[str], str]]:
    home = str(Path.home())
    if len(home) > 1:
        yield re.compile(rf"{re.escape(home)}(?![\w.-])"), "~"
    yield re.compile(r"/home/[^/\s'\":;,]+"), "~"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    # A name of a part of a path only: it may be an ordinary word.
    if user:
        yield re.compile(rf"/{re.escape(user)}(?![\w.-])"), "/<user>"
    if host := socket.gethostname():
        # The whole name first: the short name is its beginning.
        for name in dict.fromkeys((host, host.partition(".")[0])):
            yield re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"), "<host>"

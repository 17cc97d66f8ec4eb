"""Makes text of plugins and callers (names, versions, messages) safe to print.

`custom_pypto/printable.h` does the same in C++.
"""

from __future__ import annotations

import re

LONGEST = 4000
"""Characters of a message that are shown."""

# Control and format characters (such as those that change the direction of text), separators of
# lines and paragraphs, surrogates, tags. A table of its own: Unicode's grows with Python.
_UNPRINTABLE = (
    r"[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
)


def escape(text: str) -> str:
    r"""Return `text` on one line, with escapes such as ``\x1b`` for what acts on a terminal.

    Escapes characters that are invisible: control and format characters, line breaks and
    surrogates. Spaces of every width stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNPRINTABLE, lambda each: each[0].encode("unicode_escape").decode("ascii"), text)


def escape_lines(text: str) -> str:
    """Do the same as `escape`, but leave the newlines."""
    return "\n".join(map(escape, text.split("\n")))


def shorten(text: str) -> str:
    """Return `text`, without its middle when it is longer than `LONGEST`."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"


def printable(text: str) -> str:
    """Return `text` escaped on one line, without its middle when it is long."""
    return escape(shorten(text))

"""Makes text of plugins (names, versions, messages) safe to print."""

from __future__ import annotations

import unicodedata

LONGEST = 4000
"""Characters of a message that are shown."""


def escape(text: str) -> str:
    r"""Return `text` on one line, with escapes such as ``\x1b`` for what acts on a terminal.

    Escapes characters that are invisible: control and format characters (such as those that change
    the direction of text), line breaks and surrogates. Spaces of every width stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def escape_lines(text: str) -> str:
    """Do the same as `printable`, but leave the newlines."""
    return "\n".join(map(escape, text.split("\n")))


def shorten(text: str) -> str:
    """Return `text`, without its middle when it is longer than `LONGEST`."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"

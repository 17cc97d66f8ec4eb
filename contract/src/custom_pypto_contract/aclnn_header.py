"""Reads the declarations of kernels in a header of CANN, ``aclnn_*.h``.

A kernel ``aclnnX`` has two C functions. The first, ``aclnnXGetWorkspaceSize``, has the kernel's
arguments, and two parameters more.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from . import cpp_text

_SUFFIX = "GetWorkspaceSize"
_FUNCTION = re.compile(rf"\b(?P<name>aclnn\w+?){_SUFFIX}\s*(?=\()")
# A declaration has its type before it; a call stands in an expression.
_RETURN_TYPE = re.compile(r"\baclnnStatus\s*\Z")
_PARAMETER = re.compile(r"(?P<type>.*?[\s*&])(?P<name>[A-Za-z_]\w*)", re.DOTALL)
_TYPE_WORDS = frozenset({"const", "unsigned", "signed", "long", "short", "int", "char", "double"})
_OWN = ("uint64_t *", "aclOpExecutor **")
"""The types of the parameters that every such function ends with."""
_MOST_PARAMETERS = 256
"""The C++ standard has every compiler take so many."""


class Parameter(NamedTuple):
    """One parameter: its type, spaced as in ``const aclTensor *``, and its name or ''."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"`{self.type} {self.name}".replace("* ", "*").rstrip() + "`"


class Declaration(NamedTuple):
    """The first function of a kernel."""

    name: str
    """The kernel: ``aclnnAddCustom``."""
    parameters: tuple[Parameter, ...]
    line: int

    @property
    def arguments(self) -> tuple[Parameter, ...] | None:
        """The kernel's arguments; None if the last two parameters are not size and executor."""
        ends = tuple(each.type for each in self.parameters[-2:])
        return self.parameters[:-2] if ends == _OWN else None


def parse(text: str) -> list[Declaration]:
    """Return the declarations in the text of a header, in its order.

    A kernel that is declared twice is there twice: the preprocessor decides which one counts.
    """
    text = cpp_text.blank_comments(text)
    lines, ends = cpp_text.Lines(text), cpp_text.bracket_ends(text)
    found = []
    at = 0
    for match in _FUNCTION.finditer(text):
        end = ends[match.end()]
        before = text[max(0, match.start() - 80) : match.start()]
        # No declaration stands in the parameters of another.
        if not end or match.start() < at or _RETURN_TYPE.search(before) is None:
            continue
        at = end
        parts = list(cpp_text.split(text[match.end() + 1 : end - 1]))
        if len(parts) <= _MOST_PARAMETERS:
            parameters = tuple(map(_parameter, parts))
            found.append(Declaration(match["name"], parameters, lines.number_at(match.start())))
    return found


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None or match["name"] in _TYPE_WORDS or not match["type"].strip(" \n\t"):
        return Parameter(_spaced(text), "")
    return Parameter(_spaced(match["type"]), match["name"])


def _spaced(type_: str) -> str:
    """Return a type with one space between its words and before its stars."""
    words = " ".join(type_.replace("*", " * ").split())
    return words.replace("* *", "**")

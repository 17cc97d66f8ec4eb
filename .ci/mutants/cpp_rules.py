"""The rules by which C++ is broken; clang-format has laid it out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .mutant import Mutant

# Replaces by blanks what is no code: comments, strings, preprocessor lines, static_assert, types.
_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|^\#(?:[^\n\\]|\\.|\\\n)*"""
    r"""|^\s*static_assert\(.*?\);|^\s*template\s*<[^\n]*>$|^\s*using\s[^;]*;""",
    re.DOTALL | re.MULTILINE,
)
_RULES: list[tuple[str, str, str]] = [
    (rule, pattern, text)
    for rule, pairs in {
        "comparison": (
            (r"(?<= )==(?= )", "!="),
            (r"(?<= )!=(?= )", "=="),
            (r"(?<= )<(?= )", "<="),
            (r"(?<= )<=(?= )", "<"),
            (r"(?<= )>(?= )", ">="),
            (r"(?<= )>=(?= )", ">"),
        ),
        "and, or": ((r"(?<= )&&(?=\s)", "||"), (r"(?<= )\|\|(?=\s)", "&&")),
        "arithmetic": (
            (r"(?<= )\+(?=\s)", "-"),
            (r"(?<= )-(?=\s)", "+"),
            (r"(?<= )\*(?=\s)", "+"),
            (r"(?<= )/(?=\s)", "*"),
            (r"(?<= )%(?=\s)", "+"),
            (r"(?<= )\+=(?= )", "="),
        ),
        "not": ((r"!(?=[\w(])", ""),),
        "bool": ((r"\btrue\b", "false"), (r"\bfalse\b", "true")),
        "min, max": ((r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min")),
        "condition": ((r"(?<=\bif \()(?=[^;{}]*\) )", "!"),),
        "jump": ((r"\bcontinue;", ";"), (r"\bbreak;", ";")),
        "statement": ((r"^ +(?:\w+(?:::|\.|->))*\w+\([^;{}=]*\);$", ";"),),
    }.items()
    for pattern, text in pairs
]
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.'])")


def mutants(file: Path, source: str) -> Iterator[Mutant]:
    """Return every break of a file."""
    code = _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    for rule, pattern, text in _RULES:
        for found in re.finditer(pattern, code, re.MULTILINE):
            yield Mutant(file, found.start(), found.end(), text, rule)
    for found in _NUMBER.finditer(code):
        yield Mutant(file, found.start(), found.end(), str(int(found[0]) + 1), "number")

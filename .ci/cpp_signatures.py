"""Check, or with --fix write, the page of C++ signatures.

It has the headers that docs/headers.md and docs/npu.md name, each without what it does not promise:
bodies, private members, and everything in `detail`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from generated_text import ROOT, main

PAGE = ROOT / "docs" / "cpp.md"
INCLUDE = ROOT / "core/src/custom_pypto/core/include"

_HEAD = """\
# C++ signatures

<!-- Generated from the headers by .ci/cpp_signatures.py --fix -->

What the [headers](headers.md) give to kernels, with the comments that are its contract.
Everything is in the namespace `custom_pypto`. What is left out may change.
"""
_HIDDEN = re.compile(r"namespace (detail )?\{")
_CLASS = re.compile(r"(template <.*> )?(class|struct|enum class) \w+[^;()]*$")
_NO_DECLARATION = re.compile(
    r"CUSTOM_PYPTO_NAMESPACE_|namespace |using |friend |static_assert|extern |public:|[})]"
    r"|.*= delete;"
)
_DEFINED = re.compile(r"#define (\w+(\([^)]*\))?)")


def headers() -> list[Path]:
    """Return the headers that the two pages name."""
    pages = (ROOT / "docs" / name for name in ("headers.md", "npu.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    return [INCLUDE / name for name in sorted(set(re.findall(r"custom_pypto/[\w/]+\.h", text)))]


def page() -> str:
    """Return the page as it must be."""
    sections = [_HEAD]
    for header in headers():
        text = header.read_text(encoding="utf-8")
        code = "\n".join(_declarations(text.splitlines(), indent="")).strip("\n")
        if code:
            sections.append(f"## {header.relative_to(INCLUDE)}\n\n```cpp\n{code}\n```\n")
    return "\n".join(sections)


def _declarations(lines: list[str], indent: str) -> Iterator[str]:
    """Yield the declarations in `lines` that begin at `indent`, with the comments above them."""
    comment: list[str] = []
    hidden = False
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if _HIDDEN.fullmatch(line):
            hidden = True
        elif line.startswith("}  // namespace"):
            hidden = False
        elif hidden or re.match(rf"{indent}\s", line):
            continue
        elif line.startswith(f"{indent}//"):
            comment.append(line)
            continue
        elif not line.strip():
            pass
        elif line.lstrip().startswith(("private:", "protected:")):
            return
        elif line.lstrip().startswith("#"):
            defined = _DEFINED.match(line)
            if defined and comment:
                yield from ["", *comment, defined[0]]
        elif not _NO_DECLARATION.match(line.strip()):
            end = _end_of_signature(lines, at - 1)
            text = "\n".join(lines[at - 1 : end])
            yield from ["", *comment] if comment or not indent else []
            if "};" in text:
                yield text
                at = end
            elif _CLASS.match(" ".join(text.partition("{")[0].split())) and "{" in text:
                close = lines.index(f"{indent}}};", end)
                yield f"{text.partition('{')[0]}{{"
                body = lines[end:close]
                if "enum class" in text:
                    yield from body
                else:
                    yield from _declarations(body, f"{indent}  ")
                yield f"{indent}}};"
                at = close + 1
            else:
                yield _signature(text)
                at = end
        comment = []


def _end_of_signature(lines: list[str], begin: int) -> int:
    """Return the line behind the one with the first `{` or `;` that is outside of brackets."""
    depth = 0
    for number in range(begin, len(lines)):
        for letter in lines[number]:
            depth += (letter in "([") - (letter in ")]")
            if letter in "{;" and depth == 0:
                return number + 1
    return len(lines)


def _signature(text: str) -> str:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in "{;":
            text = text[:place]
            break
    # Initialisers of a constructor.
    text = re.sub(r"\)\s*\n?\s*:\s.*", ")", text, flags=re.DOTALL)
    return f"{text.rstrip(' =')};"


if __name__ == "__main__":
    sys.exit(main(__doc__, {PAGE: page()}))

"""docs/troubleshooting.md: the messages that it quotes are those of the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [
    " ".join(each.split()) for each in re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)
]
# What the sources put in: a value, or a constant that is a name.
FILLED_IN = re.compile(r"'…'|…|custom_pypto\b|CUSTOM_PYPTO_\w+")
CPP_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


@cache
def texts() -> str:
    """The texts in the sources, a line each."""
    files = [path for pattern in ("*/src", "integrations/*/src") for path in ROOT.glob(pattern)]
    python = (text for folder in files for path in folder.rglob("*.py") for text in _python(path))
    cpp = (text for folder in files for path in folder.rglob("*.h") for text in _cpp(path))
    return "\n".join(" ".join(text.split()) for text in (*python, *cpp))


def _python(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _cpp(path: Path) -> Iterator[str]:
    # Neighbouring literals are one, also where `+` or `,` joins them.
    text = re.sub(r'"(?:\s*\+)?\s*"', "", path.read_text(encoding="utf-8"))
    yield from CPP_STRING.findall(text)


def test_many_messages_are_explained() -> None:
    assert len(MESSAGES) >= 40


@pytest.mark.parametrize("message", MESSAGES)
def test_the_words_of_a_message_are_those_of_the_sources(message: str) -> None:
    parts = [part.strip(" :;,") for part in FILLED_IN.split(message)]
    assert len("".join(parts)) > 15
    assert [part for part in parts if part not in texts()] == []

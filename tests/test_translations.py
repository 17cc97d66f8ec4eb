"""The Chinese pages keep step with the English ones: code, headings, tables, links."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from repository import ROOT
from test_docs import FENCE, anchors

CHINESE = ".zh-CN.md"
PAIRS = {
    path.relative_to(ROOT).as_posix(): path.with_name(path.name.replace(CHINESE, ".md"))
    for folder in (ROOT, ROOT / "docs")
    for path in sorted(folder.glob(f"*{CHINESE}"))
}
CODE = re.compile(r"`([^`]+)`")
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
ROW = re.compile(r"^\|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")

pair = pytest.mark.parametrize("page", PAIRS)


def texts(page: str) -> tuple[str, str]:
    """A Chinese page and its English one."""
    return (ROOT / page).read_text(encoding="utf-8"), PAIRS[page].read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", text)


def destinations(path: Path) -> Counter[tuple[str, str | int]]:
    """Where a page's links lead: a page in English, and the section; its number in a pair."""
    found: Counter[tuple[str, str | int]] = Counter()
    for link in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        chinese = file.name.endswith(CHINESE)
        english = file.with_name(file.name.replace(CHINESE, ".md")) if chinese else file
        translated = english in PAIRS.values()
        section = anchors(file).index(anchor) if translated and anchor else anchor
        found[str(english), section] += 1
    return found


def test_there_are_chinese_pages() -> None:
    assert "README.zh-CN.md" in PAIRS


@pair
def test_blocks_of_code_are_the_same(page: str) -> None:
    chinese, english = texts(page)
    assert FENCE.findall(chinese) == FENCE.findall(english)


@pair
def test_names_and_commands_in_sentences_are_kept(page: str) -> None:
    chinese, english = (
        Counter(" ".join(code.split()) for code in CODE.findall(prose(text)))
        for text in texts(page)
    )
    assert not english - chinese


@pair
def test_there_are_as_many_headings_of_each_level(page: str) -> None:
    chinese, english = map(prose, texts(page))
    assert HEADING.findall(chinese) == HEADING.findall(english)


@pair
def test_tables_have_as_many_rows(page: str) -> None:
    chinese, english = map(prose, texts(page))
    rows = [[len(ROW.findall(part)) for part in HEADING.split(text)] for text in (chinese, english)]
    assert rows[0] == rows[1]


@pair
def test_links_lead_to_the_same_sections(page: str) -> None:
    assert destinations(ROOT / page) == destinations(PAIRS[page])


@pair
def test_chinese_pages_link_to_chinese_pages(page: str) -> None:
    path, english = ROOT / page, PAIRS[page]
    links = {link.partition("#")[0] for link in LINK.findall(prose(texts(page)[0]))}
    targets = {(path.parent / link).resolve() for link in links if link}
    assert targets & set(PAIRS.values()) == {english}

"""The Chinese pages keep step with the English ones: commands, headings, tables, links."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from repository import ROOT

CHINESE = ".zh-CN.md"
PAIRS = {
    path.relative_to(ROOT).as_posix(): path.with_name(path.name.replace(CHINESE, ".md"))
    for folder in (ROOT, ROOT / "docs")
    for path in sorted(folder.glob(f"*{CHINESE}"))
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
ROW = re.compile(r"^\|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s][^)\s]*)\)")

pair = pytest.mark.parametrize("page", PAIRS)


def texts(page: str) -> tuple[str, str]:
    """A Chinese page and its English one."""
    return (ROOT / page).read_text(encoding="utf-8"), PAIRS[page].read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", text)


def test_there_are_chinese_pages() -> None:
    assert list(PAIRS) == ["README.zh-CN.md", "docs/tutorial.zh-CN.md"]


@pair
def test_code_is_the_same(page: str) -> None:
    chinese, english = texts(page)
    assert FENCE.findall(chinese) == FENCE.findall(english)


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
def test_links_lead_to_the_same_pages(page: str) -> None:
    chinese, english = map(prose, texts(page))
    links = Counter(link.replace(CHINESE, ".md") for link in LINK.findall(chinese))
    assert links == Counter(link.replace(CHINESE, ".md") for link in LINK.findall(english))

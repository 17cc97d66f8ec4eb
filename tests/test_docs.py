"""The code in the documentation runs, its links lead somewhere, Chinese pages keep step."""

import ast
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from readme import code_of
from repository import ROOT

FOLDERS = "benchmarks blocks builder contract core docs examples integrations/* simulator testing"
PAGES = sorted(path for folder in (".", *FOLDERS.split()) for path in ROOT.glob(f"{folder}/*.md"))
PLUGIN_PAGES = sorted(ROOT.glob("plugins/*/README.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [
        *("README.md", *(f"docs/{name}.md" for name in ("calling", "binding", "serving"))),
        "docs/transformers.md",
        *map(_name, PLUGIN_PAGES),
    ],
)
def test_python_of_a_page_runs_from_top_to_bottom(
    page: str, server: ForkServer, tmp_path: Path
) -> None:
    blocks = code_of((ROOT / page).read_text(), "python")
    assert blocks, f"{page} shows no Python"
    done = server.run("\n".join([f"__import__('os').chdir({str(tmp_path)!r})", *blocks]), [], {})
    assert done.returncode == 0, done.stderr


SHOWN = {
    "docs/binding.md": ("plugins/*/ops.toml", "docs/smallest.md", "tests/third_party/**/*.py"),
    "docs/npu.md#Launched directly": (
        "plugins/advance_step/pyproject.toml",
        "plugins/advance_step/csrc/**/*.cpp",
    ),
}


@pytest.mark.parametrize("section", SHOWN)
def test_excerpts_of_a_page_are_in_the_tree(section: str) -> None:
    page, _, title = section.partition("#")
    text = (ROOT / page).read_text()
    if title:
        (text,) = (part for part in text.split("\n## ") if part.startswith(f"{title}\n"))
    tree = [path.read_text() for pattern in SHOWN[section] for path in ROOT.glob(pattern)]
    shown = [code for language, code in FENCE.findall(text) if language in ("cpp", "py", "toml")]
    assert shown
    for code in shown:
        assert any(code in each for each in tree), code


@pytest.mark.parametrize("page", [*PAGES, *PLUGIN_PAGES], ids=_name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target, anchor in (each for each in LINK.findall(page.read_text()) if "://" not in each[0]):
        found = page.parent / target if target else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


def anchors(page: Path) -> list[str]:
    """The anchors of a page: its headings in order, as GitHub writes them in an address."""
    titles = HEADING.findall(FENCE.sub("", page.read_text()))
    return [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


def test_the_tests_that_hold_promises_are_there() -> None:
    held = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text("utf-8"))
    assert len(held) > 20
    for file, name in held:
        assert f"\ndef {name}" in (ROOT / file).read_text("utf-8"), (file, name)


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PATH = re.compile(r"`([\w./-]+(?:/|\.(?:py|h|cpp|toml|md)))`")
IMPORTS = dict(re.findall(r"^\| `([^`]+/src/[^`]+)` \| (.*) \|$", ARCHITECTURE, re.MULTILINE))


def test_every_path_of_the_architecture_exists() -> None:
    tree: list[str] = []
    for root, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        tree += (f"{root}/{name}" for name in (*files, *(f"{folder}/" for folder in folders)))
    named = set(PATH.findall(ARCHITECTURE)) - {"ops.h"}  # which the build generates
    assert "core/loader.py" in named
    assert [each for each in sorted(named) if not any(p.endswith(f"/{each}") for p in tree)] == []


@pytest.mark.parametrize("sources", IMPORTS)
def test_packages_import_what_the_architecture_allows(sources: str) -> None:
    folders = list(ROOT.glob(sources))
    allowed = {*re.findall(r"`(\w+)`", IMPORTS[sources]), *(folder.name for folder in folders)}
    other = {ROOT / each for each in IMPORTS if each.endswith(".py") and each != sources}
    if "plugins" in IMPORTS[sources]:
        allowed |= {folder.name for folder in ROOT.glob("plugins/*/src/*")}
    files = {p for f in folders for p in ([f] if f.is_file() else f.rglob("*.py"))} - other
    assert files
    assert [str(file) for file in files if not _imports_of_ours(file) <= allowed] == []


def _imports_of_ours(file: Path) -> set[str]:
    """The packages of this repository that a file imports, at its top or in a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names if name.startswith("custom_pypto")}


CHINESE = ".zh-CN.md"
PAIRS = {
    _name(path): path.with_name(path.name.replace(CHINESE, ".md"))
    for folder in (ROOT, ROOT / "docs")
    for path in sorted(folder.glob(f"*{CHINESE}"))
}


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


KEPT: dict[str, Callable[[Path], Any]] = {
    "blocks of code": lambda path: FENCE.findall(path.read_text(encoding="utf-8")),
    "levels of headings": lambda path: re.findall(r"^(#+) ", prose(path), re.MULTILINE),
    "rows of tables": lambda path: re.findall(r"^\|.", prose(path), re.MULTILINE),
}


@pytest.mark.parametrize("what", KEPT)
@pytest.mark.parametrize("page", PAIRS)
def test_a_chinese_page_has_what_the_english_one_has(page: str, what: str) -> None:
    assert KEPT[what](ROOT / page) == KEPT[what](PAIRS[page])


@pytest.mark.parametrize("page", PAIRS)
def test_a_chinese_page_keeps_names_and_links_to_chinese_pages(page: str) -> None:
    chinese, english = (
        Counter(" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(path)))
        for path in (ROOT / page, PAIRS[page])
    )
    assert not english - chinese
    links = LINK.findall(prose(ROOT / page))
    targets = {((ROOT / page).parent / target).resolve() for target, _ in links if target}
    assert targets & set(PAIRS.values()) == {PAIRS[page]}

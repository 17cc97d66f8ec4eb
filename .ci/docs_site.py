"""Build the documentation's site into build/site/html; a broken link is an error.

The pages are files of the repository, at their places. docs/README.md is their list: its sections
and links become the site's navigation. Links to other files lead to GitHub, where that is known,
and are text elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INDEX = ROOT / "docs" / "README.md"
BUILD = ROOT / "build" / "site"
PAGES = BUILD / "pages"
HTML = BUILD / "html"

_SECTION = re.compile(r"^## (.+)\n((?:.*\n)*?)(?=## |\Z)", re.MULTILINE)
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#:]+\.md)\)", re.MULTILINE)
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_INDENT = re.compile(r"^( +)", re.MULTILINE)


def sections() -> dict[str, list[tuple[str, Path]]]:
    """Return the pages with their titles, by section, as docs/README.md lists them."""
    found = {
        title: [(name, (INDEX.parent / path).resolve()) for name, path in _ENTRY.findall(text)]
        for title, text in _SECTION.findall(INDEX.read_text(encoding="utf-8"))
    }
    # A new op needs no line in the list.
    found["Ops"] += [(path.parent.name, path) for path in sorted(ROOT.glob("plugins/*/README.md"))]
    return found


def pages() -> list[Path]:
    """Return the pages of the site, each once."""
    return [ROOT / "README.md", INDEX, *(path for each in sections().values() for _, path in each)]


def unlisted() -> list[str]:
    """Return the pages that docs/README.md must list, and does not list once."""
    listed = Counter(pages())
    needed = (path for pattern in ("*.md", "docs/*.md") for path in sorted(ROOT.glob(pattern)))
    return [
        f"{path.relative_to(ROOT)}: list it once, in a section of docs/README.md"
        for path in {**dict.fromkeys(needed), **listed}
        if listed[path] != 1
    ]


def site_text(page: Path, known: set[Path], source: str) -> str:
    """Return the text of a page for the site.

    `known` are the files of the site; `source` begins the addresses of the others, or is empty.
    """

    def replace(link: re.Match[str]) -> str:
        image, text, target, _ = link.groups()
        file = (page.parent / target).resolve()
        if file in known or image:
            return link[0]
        path = file.relative_to(ROOT).as_posix()
        return f"[{text}]({source}/{path})" if source else text

    parts = _FENCE.split(page.read_text(encoding="utf-8"))
    # A nested list is indented by two spaces on GitHub, and by four in the site.
    parts[::2] = [_INDENT.sub(r"\1\1", _LINK.sub(replace, part)) for part in parts[::2]]
    # In HTML, the site reads Markdown only where it is told to.
    return "".join(parts).replace("<details>", "<details markdown>")


def stage(source: str, url: str) -> None:
    """Write the pages and the configuration of the site."""
    shutil.rmtree(BUILD, ignore_errors=True)
    known = set(pages())
    for page in known:
        copy = PAGES / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(site_text(page, known, source), encoding="utf-8")
        links = _LINK.findall(page.read_text(encoding="utf-8"))
        for image in ((page.parent / each[2]).resolve() for each in links if each[0]):
            copy = PAGES / image.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, copy)
    shutil.copyfile(ROOT / ".ci" / "docs_site.css", PAGES / "docs_site.css")
    text = (ROOT / ".ci" / "docs_site.toml").read_text(encoding="utf-8")
    sources = sorted(map(str, (*ROOT.glob("*/src"), *ROOT.glob("integrations/*/src"))))
    text = text.replace("PATHS", json.dumps(sources))
    if url:
        text = text.replace("[project]\n", f"[project]\nsite_url = {json.dumps(url)}\n")
    (BUILD / "zensical.toml").write_text(f"{text}\n{_navigation()}", encoding="utf-8")


def _navigation() -> str:
    home = [("custom_pypto", ROOT / "README.md"), ("All pages", INDEX)]
    lines = []
    for title, entries in {"Home": home, **sections()}.items():
        listed = ", ".join(
            f"{{ {json.dumps(name)} = {json.dumps(path.relative_to(ROOT).as_posix())} }}"
            for name, path in entries
        )
        lines.append(f"[[project.nav]]\n{json.dumps(title)} = [{listed}]\n")
    return "\n".join(lines)


def main() -> int:
    """Build the site; return 1 where a page is wrong."""
    variables = [os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "SHA")]
    server, repository, commit = variables
    if problems := unlisted():
        print(*problems, sep="\n")
        return 1
    stage(
        f"{server}/{repository}/blob/{commit}" if repository else "", os.environ.get("SITE_URL", "")
    )
    built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=BUILD)
    if built.returncode:
        return 1
    print(f"The site is in {HTML}; look at it with: python -m http.server --directory {HTML}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

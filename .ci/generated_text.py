"""Texts of the documentation that are generated: they are compared, or written with --fix."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(description: str | None, texts: Mapping[Path, str]) -> int:
    """Compare files with the texts that they must have, or write them; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--fix", action="store_true", help="write what differs")
    fix = parser.parse_args().fix
    old = [path for path, text in texts.items() if differs(path, text)]
    for path in old:
        print(f"{path.relative_to(ROOT)}: {'rewritten' if fix else 'differs; run with --fix'}")
        if fix:
            path.write_text(texts[path], encoding="utf-8")
    return 1 if old and not fix else 0


def differs(path: Path, text: str) -> bool:
    """Return whether a file has another text, or is missing."""
    return not path.exists() or path.read_text(encoding="utf-8") != text

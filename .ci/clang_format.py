"""Check, or with --fix correct, the formatting of every C++ file of the repository."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    "benchmarks",
    "blocks",
    "builder",
    "core",
    "integrations",
    "plugins",
    "simulator",
    "testing",
    "tests",
)
SUFFIXES = {".cpp", ".h"}
GENERATED = {"build", "dist"}


def main() -> int:
    """Run clang-format; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    parser.add_argument("files", nargs="*", type=Path, help="only these (default: all)")
    options = parser.parse_args()
    mode = ["-i"] if options.fix else ["--dry-run", "-Werror"]
    return subprocess.run(["clang-format", *mode, *(options.files or _sources())]).returncode


def _sources() -> list[Path]:
    return sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and not GENERATED.intersection(path.relative_to(ROOT).parts)
    )


if __name__ == "__main__":
    sys.exit(main())

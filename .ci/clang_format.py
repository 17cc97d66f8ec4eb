"""Check, or with --fix correct, the formatting of every C and C++ file of the repository."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run clang-format; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    options = parser.parse_args()
    mode = ["-i"] if options.fix else ["--dry-run", "-Werror"]
    return subprocess.run(["clang-format", *mode, *_sources()]).returncode


def _sources() -> list[Path]:
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.cpp", "*.h", "*.c"]
    found = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    return [path for path in map(ROOT.joinpath, found) if path.is_file()]


if __name__ == "__main__":
    sys.exit(main())

"""Check, or with --fix correct, the contracts in the READMEs of plugins.

They stand between two markers, and are the text that `help` of an op shows.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from pathlib import Path

from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.description import describe

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- Generated from ops.toml by .ci/contract_sections.py --fix -->"
END = "<!-- End of the generated part -->"
_SECTION = re.compile(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


def readmes() -> list[Path]:
    """Return the READMEs of the plugins."""
    return sorted(ROOT.glob("plugins/*/README.md"))


def update(readme: Path) -> str:
    """Return the text of a README with the contracts that its ops.toml has now.

    Raises:
        ValueError: there is no place for them.
    """
    ops = ops_file.read(readme.with_name(ops_file.FILE_NAME)).ops
    section = "\n".join([BEGIN, "", *map(_format, ops), END])
    text, count = _SECTION.subn(lambda _: section, readme.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{readme}: write {BEGIN} and {END} once, where the contracts belong")
    return text


def _format(op: OpContract) -> str:
    lines = [
        part
        for line in describe(op).split("\n")
        for part in textwrap.wrap(
            line, 118, subsequent_indent="      ", drop_whitespace=False, break_on_hyphens=False
        )
        or [""]
    ]
    text = "\n".join(line.rstrip() for line in lines)
    summary = f"<details><summary><code>{op.name}</code></summary>"
    return f"{summary}\n\n```text\n{text}\n```\n\n</details>\n"


def main() -> int:
    """Compare or write every README; return 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    fix = parser.parse_args().fix
    old = [path for path in readmes() if path.read_text(encoding="utf-8") != update(path)]
    for path in old:
        print(f"{path.relative_to(ROOT)}: {'rewritten' if fix else 'differs; run with --fix'}")
        if fix:
            path.write_text(update(path), encoding="utf-8")
    return 1 if old and not fix else 0


if __name__ == "__main__":
    sys.exit(main())

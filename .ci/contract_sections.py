"""Check, or with --fix correct, the contracts in the READMEs of plugins.

They stand between two markers, and are the text that `help` of an op shows.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.description import describe
from generated_text import ROOT, main

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


if __name__ == "__main__":
    sys.exit(main(__doc__, {path: update(path) for path in readmes()}))

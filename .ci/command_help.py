"""Check, or with --fix correct, the help of commands in docs/command-line.md."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from unittest import mock

import custom_pypto_cli
from generated_text import ROOT, main

PAGE = ROOT / "docs" / "command-line.md"
_HELP = re.compile(r"^(```\n\$ custom-pypto ([^\n]*--help)\n).*?^```$", re.MULTILINE | re.DOTALL)


def page() -> str:
    """Return the page as it must be."""
    text = PAGE.read_text(encoding="utf-8")
    return _HELP.sub(lambda block: f"{block[1]}{_help(block[2].split())}```", text)


def _help(arguments: list[str]) -> str:
    printed = io.StringIO()
    plain = mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"})
    with plain, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        custom_pypto_cli.main(arguments)
    return printed.getvalue()


if __name__ == "__main__":
    sys.exit(main(__doc__, {PAGE: page()}))

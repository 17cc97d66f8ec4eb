"""The code of a page, which tests run."""

import re
from pathlib import Path
from typing import Any

import torch


def code_of(text: str, language: str) -> list[str]:
    """The blocks of a language in the text of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_page(page: Path) -> dict[str, Any]:
    """Run a page's Python from top to bottom; return the names that it defines."""
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec("\n".join(code_of(page.read_text("utf-8"), "python")), names)
    return names

"""The Python of a page, which tests run."""

import re
from pathlib import Path
from typing import Any

import torch


def run_page(page: Path) -> dict[str, Any]:
    """Run a page's Python from top to bottom; return the names that it defines."""
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    code = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    exec("\n".join(code), names)
    return names

"""The README's definition is the op."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import custom_pypto.core  # noqa: F401
import torch

README = Path(__file__).parent.parent / "README.md"


def test_definition_in_the_readme_computes_what_the_ops_compute() -> None:
    definition: dict[str, Any] = {}
    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(code[0], definition)
    one, other = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    for name in ("add_custom", "add_custom_backward"):
        args = (one, other) if name == "add_custom" else (one,)
        op = getattr(torch.ops.custom_pypto, name)
        torch.testing.assert_close(op(*args), definition[name](*args), rtol=0, atol=0)


def test_examples_in_the_readme_run() -> None:
    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    for example in code[1:]:
        exec(example, {})

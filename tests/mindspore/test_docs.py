"""The documentation's code runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import FENCE, ROOT


@pytest.mark.parametrize("page", ["docs/mindspore.md", "integrations/mindspore/README.md"])
def test_python_of_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    found = FENCE.findall((ROOT / page).read_text())
    blocks = [code for language, code in found if language == "python"]
    assert blocks
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    run = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

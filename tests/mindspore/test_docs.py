"""The documentation's code runs."""

from __future__ import annotations

import pytest
from readme import run_page
from repository import ROOT


@pytest.mark.parametrize("page", ["docs/mindspore.md", "integrations/mindspore/README.md"])
def test_python_of_a_page_runs_from_top_to_bottom(page: str) -> None:
    assert "cp" in run_page(ROOT / page)

"""custom-pypto verify, on simulated NPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ops import OPS
from simulated import Simulated
from verifying import Verify


@pytest.fixture
def verify(
    monkeypatch: pytest.MonkeyPatch, machines: Simulated, opp: dict[str, str], tmp_path: Path
) -> Verify:
    """Runs the command with the kernels of custom opp packages."""
    return Verify(monkeypatch, machines, opp["custom"], tmp_path)


def test_every_op_passes(verify: Verify) -> None:
    done = verify("--calls", "1")
    print(done.report)
    assert done.status == 0
    assert {each["subject"] for each in done.data["checks"]} >= {*OPS}

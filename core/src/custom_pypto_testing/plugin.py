"""The pytest plugin: the option for devices, and the stand-in for torchair.

It imports neither torch nor core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .torchair_graph import Graph

OPTION = "--custom-pypto-device"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the devices; `devices` reads it."""
    parser.getgroup("custom_pypto").addoption(
        OPTION,
        action="append",
        metavar="DEVICE",
        help="device that custom_pypto_testing.Conformance runs on (for example npu); may be given"
        " more than once; default: cpu",
    )


def devices(config: pytest.Config) -> list[str]:
    """The devices chosen on the command line; cpu when none is."""
    return config.getoption(OPTION, default=None) or ["cpu"]


@pytest.fixture
def torchair_graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """Records the nodes of converters that are imported meanwhile; torchair is a stand-in."""
    from .torchair_graph import stand_in

    with stand_in(monkeypatch) as graph:
        yield graph

"""Fixtures for tests that need installed plugins; see plugin_factory.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import plugin_factory
import pytest
from fork_server import ForkServer

if TYPE_CHECKING:
    from cli_records import CommandLine


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs Python with core and no plugin."""
    folder = tmp_path_factory.mktemp("server")
    started = ForkServer([plugin_factory.lend(folder / "site-packages")], folder)
    yield started
    started.close()


@pytest.fixture(scope="session")
def plugin_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled library that plugins are made from."""
    return plugin_factory.compile_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def site(tmp_path: Path, server: ForkServer, plugin_library: Path) -> plugin_factory.Site:
    """A folder to install plugins into."""
    folder = tmp_path / "site"
    folder.mkdir()
    return plugin_factory.Site(folder, server, plugin_library)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line on a core with the records of cli_records.py."""
    # It imports core, which most tests here must not do.
    from cli_records import ADD, BROKEN, CommandLine

    made = CommandLine(monkeypatch, capsys)
    made.use(ADD, BROKEN)
    return made

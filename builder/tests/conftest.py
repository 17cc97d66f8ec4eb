"""Fixtures for tests that need installed plugins, or sources of one."""

from pathlib import Path

import pytest
from build_project import Project, tiny_project
from plugin_fixtures import cli, plugin_library, server, site

__all__ = ["cli", "plugin_library", "server", "site"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The smallest plugin."""
    return tiny_project(tmp_path / "project")

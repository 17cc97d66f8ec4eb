"""Fixtures for tests that need installed plugins."""

from plugin_fixtures import cli, plugin_library, server, site

__all__ = ["cli", "plugin_library", "server", "site"]

"""Calls itself twin, as duplicate-plugin-name does."""

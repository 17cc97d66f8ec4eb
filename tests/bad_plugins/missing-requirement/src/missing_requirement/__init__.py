"""Requires an op that no installed plugin provides."""

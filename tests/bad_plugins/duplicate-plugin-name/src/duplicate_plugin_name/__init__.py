"""Calls itself twin, as duplicate-plugin-name-too does."""

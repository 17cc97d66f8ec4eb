"""Provides an op that custom-pypto-add-custom provides already."""

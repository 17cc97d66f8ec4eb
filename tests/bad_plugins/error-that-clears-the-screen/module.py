"""Raises an error whose text acts on a terminal."""

raise ValueError("\x1b[2J")

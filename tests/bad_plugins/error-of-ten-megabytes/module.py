"""Raises an error with a text of ten megabytes."""

raise ValueError("x" * 10_000_000)

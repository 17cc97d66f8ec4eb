"""Throws after it has registered an op."""

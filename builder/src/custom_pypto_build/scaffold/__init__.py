"""Writes the files of a new plugin: one op, from its schema."""

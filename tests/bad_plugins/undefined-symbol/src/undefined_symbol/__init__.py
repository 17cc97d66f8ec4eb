"""Calls a function that no library has."""

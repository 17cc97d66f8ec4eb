"""Mutation check: single breaks of our sources, drawn by rule; a test must fail for each."""

"""Finds and checks installed plugins before any of their code runs; needs no torch."""

"""Timing of transformers' sparse attention models, with and without the ops."""

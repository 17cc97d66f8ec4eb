"""Timings of the official ops against PyTorch, and the PyTorch baselines to compare with."""

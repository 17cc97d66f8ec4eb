"""Reads memory that it does not have."""

import ctypes

ctypes.string_at(0)

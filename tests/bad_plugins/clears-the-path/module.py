"""Clears sys.path."""

import sys

sys.path.clear()

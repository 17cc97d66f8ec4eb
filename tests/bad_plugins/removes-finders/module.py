"""Clears sys.meta_path."""

import sys

sys.meta_path.clear()

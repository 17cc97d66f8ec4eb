"""Calls sys.exit()."""

import sys

sys.exit(0)

"""Prints megabytes, and fails."""

import sys

for _stream in (sys.stdout, sys.stderr):
    _stream.write("x" * 3_000_000 + "\n")
raise LookupError

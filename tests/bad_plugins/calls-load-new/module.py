"""Has core load plugins while it is loaded."""

from custom_pypto.core import load_new

load_new()

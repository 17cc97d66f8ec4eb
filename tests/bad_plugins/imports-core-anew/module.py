"""Deletes core from sys.modules and imports it again."""

import sys

del sys.modules["custom_pypto.core"]
import custom_pypto.core  # noqa: E402, F401

"""``python -m custom_pypto_cli``: the same as ``custom-pypto``."""

import os
import sys

# `python -m` puts the current folder first on the path. A json.py there would be imported instead
# of the library's, so the folder must go first. os and sys are imported already.
_HOME = __file__.rpartition("/custom_pypto_cli/")[0]
try:
    _CURRENT = os.getcwd()  # noqa: PTH109
except OSError:
    # It was deleted, and Python puts nothing in its place.
    _CURRENT = _HOME
if sys.path[0] == _CURRENT != _HOME:
    del sys.path[0]

from custom_pypto_cli import main  # noqa: E402

sys.exit(main())

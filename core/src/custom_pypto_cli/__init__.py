"""The ``custom-pypto`` command line.

Importing this package needs the standard library only, so that ``custom-pypto doctor`` works where
torch does not.
"""

from custom_pypto_cli.console import main

__all__ = ["main"]

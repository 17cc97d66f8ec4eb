"""Removes modules of core."""

import sys

for _name in [name for name in sys.modules if name.startswith("custom_pypto_")]:
    del sys.modules[_name]

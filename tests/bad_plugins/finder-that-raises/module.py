"""Puts a finder first that raises."""

import sys
from importlib.abc import MetaPathFinder


class _Finder(MetaPathFinder):
    def find_spec(self, *args: object) -> None:
        raise LookupError("no module at all")


sys.meta_path.insert(0, _Finder())

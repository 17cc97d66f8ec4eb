"""The conformance suite that every op plugin runs in its own tests.

    class TestAddCustom(custom_pypto_testing.Conformance):
        plugin = "add_custom"

`EveryIsa` runs tests of CPU kernels at each instruction set. `assert_close` is the comparison that
the suite uses by default; `Subject` and `Case` are for those who run it on ops that no plugin
provides. Importing this package imports neither torch nor core: that happens when one of these
names is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .case import Case as Case
    from .comparison import assert_close as assert_close
    from .conformance import Conformance as Conformance
    from .every_isa import EveryIsa as EveryIsa
    from .subject import Subject as Subject

__all__ = ["Case", "Conformance", "EveryIsa", "Subject", "assert_close"]

_MODULES = {
    "Case": "case",
    "Conformance": "conformance",
    "EveryIsa": "every_isa",
    "Subject": "subject",
    "assert_close": "comparison",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)

"""The conformance suite that every op plugin runs in its own tests.

    class TestAddCustom(custom_pypto_testing.Conformance):
        plugin = "add_custom"

`EveryIsa` runs tests of CPU kernels at each instruction set. `assert_close` is the default
comparison of the suite. `Op` runs the suite on ops without a plugin. `Graph`, from
the fixture ``torchair_graph``, and `GraphTensor` are for tests of converters. Importing this
package imports neither torch nor core; using one of these names does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .comparison import assert_close as assert_close
    from .conformance import Conformance as Conformance
    from .every_isa import EveryIsa as EveryIsa
    from .ops_under_test import Op as Op
    from .torchair_graph import Graph as Graph
    from .torchair_graph import GraphTensor as GraphTensor

__all__ = ["Conformance", "EveryIsa", "Graph", "GraphTensor", "Op", "assert_close"]

_MODULES = {
    "Conformance": "conformance",
    "EveryIsa": "every_isa",
    "Graph": "torchair_graph",
    "GraphTensor": "torchair_graph",
    "Op": "ops_under_test",
    "assert_close": "comparison",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)

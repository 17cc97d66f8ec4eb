"""The tests of add_custom's CPU kernels at every instruction set of the machine."""

from __future__ import annotations

import custom_pypto_testing


class TestIsas(custom_pypto_testing.EveryIsa):
    plugin = "add_custom"
    files = ("test_add_custom.py",)

"""The tests of lightning_indexer_prolog's CPU kernels at every instruction set of the machine."""

from __future__ import annotations

import custom_pypto_testing


class TestIsas(custom_pypto_testing.EveryIsa):
    plugin = "lightning_indexer_prolog"
    files = ("test_prolog.py",)

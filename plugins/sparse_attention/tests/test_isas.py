"""The tests of sparse_attention's CPU kernels at every instruction set of the machine."""

from __future__ import annotations

import custom_pypto_testing


class TestIsas(custom_pypto_testing.EveryIsa):
    plugin = "sparse_attention"
    files = ("test_attention.py", "test_fused.py", "test_prologs.py")

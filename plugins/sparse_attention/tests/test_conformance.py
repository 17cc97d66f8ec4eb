"""The conformance suite on the ops of sparse_attention, and kernels at each instruction set."""

import custom_pypto_testing


class TestSparseAttention(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "sparse_attention"
    files = ("test_attention.py", "test_fused.py", "test_prologs.py")

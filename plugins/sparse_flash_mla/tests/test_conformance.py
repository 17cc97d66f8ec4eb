"""The conformance suite on the ops of sparse_flash_mla, and kernels at each instruction set."""

import custom_pypto_testing


class TestSparseFlashMla(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "sparse_flash_mla"
    files = ("test_attention.py",)

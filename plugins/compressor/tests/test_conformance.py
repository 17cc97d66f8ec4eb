"""The conformance suite on the compressor's ops, and kernels at each instruction set."""

import custom_pypto_testing


class TestCompressor(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "compressor"
    files = ("test_compressor.py",)

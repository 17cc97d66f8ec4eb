"""The conformance suite on the ops of int8 products, and kernels at each instruction set."""

import custom_pypto_testing


class TestQuantMatmul(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "quant_matmul"
    files = ("test_quant_matmul.py",)

"""The conformance suite on weight_quant_matmul, and its kernels at each instruction set."""

import custom_pypto_testing


class TestWeightQuantMatmul(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "weight_quant_matmul"
    files = ("test_weight_quant_matmul.py",)

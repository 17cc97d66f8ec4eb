"""The conformance suite on npu_grouped_matmul, and its kernels at each instruction set."""

import custom_pypto_testing


class TestGroupedMatmul(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "grouped_matmul"
    files = ("test_grouped_matmul.py",)

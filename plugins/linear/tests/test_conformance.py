"""The conformance suite on linear, and its kernels at each instruction set."""

import custom_pypto_testing


class TestLinear(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "linear"
    files = ("test_linear.py",)

"""The conformance suite on the ops of hyper-connections, and kernels at each instruction set."""

import custom_pypto_testing


class TestMhc(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "mhc"
    files = ("test_mhc.py",)

"""The conformance suite on the ops of add_custom, and kernels at each instruction set."""

import custom_pypto_testing


class TestAddCustom(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "add_custom"
    files = ("test_add_custom.py",)

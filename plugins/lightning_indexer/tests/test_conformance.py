"""The conformance suite on the ops of lightning_indexer, and kernels at each instruction set."""

import custom_pypto_testing


class TestLightningIndexer(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "lightning_indexer"
    files = ("test_scores.py", "test_selection.py", "test_quant.py")

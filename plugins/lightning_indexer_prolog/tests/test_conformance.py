"""The conformance suite on the prolog of the indexer, and kernels at each instruction set."""

import custom_pypto_testing


class TestLightningIndexerProlog(custom_pypto_testing.Conformance, custom_pypto_testing.EveryIsa):
    plugin = "lightning_indexer_prolog"
    files = ("test_prolog.py",)

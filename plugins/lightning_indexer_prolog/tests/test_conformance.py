"""The conformance suite on npu_lightning_indexer_prolog_pto."""

from __future__ import annotations

import custom_pypto_testing


class TestLightningIndexerProlog(custom_pypto_testing.Conformance):
    plugin = "lightning_indexer_prolog"

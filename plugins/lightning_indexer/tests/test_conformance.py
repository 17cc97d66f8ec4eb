"""The conformance suite on the ops of lightning_indexer."""

from __future__ import annotations

from custom_pypto_testing import Conformance


class TestLightningIndexer(Conformance):
    plugin = "lightning_indexer"

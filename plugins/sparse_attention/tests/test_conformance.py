"""The conformance suite on the ops of sparse_attention."""

from __future__ import annotations

from custom_pypto_testing import Conformance


class TestSparseAttention(Conformance):
    plugin = "sparse_attention"

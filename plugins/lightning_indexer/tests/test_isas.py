from __future__ import annotations

import custom_pypto_testing


class TestIsas(custom_pypto_testing.EveryIsa):
    plugin = "lightning_indexer"
    files = ("test_scores.py", "test_selection.py")

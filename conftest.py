"""What every test of this repository shares."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all modules and tests again and again."""
    gc.collect()
    gc.freeze()

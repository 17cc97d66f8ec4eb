"""Put on PYTHONPATH by ``custom-pypto-sim run``: activates the simulator when torch is imported.

Interpreters that never import torch (pip, say) pay nothing. Another sitecustomize that this one
hides is run as well.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


class _AtTorch:
    """Activates the simulator just before torch, or torch_npu, is imported for the first time."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in ("torch", "torch_npu"):
            sys.meta_path.remove(self)
            importlib.import_module("custom_pypto_simulator")
        return None


def _run_hidden() -> None:
    here = Path(__file__).parent.resolve()
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _AtTorch())
_run_hidden()

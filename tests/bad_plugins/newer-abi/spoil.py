"""Forge the core ABI, as a wheel for the next core would have it."""

from __future__ import annotations

import json
from pathlib import Path


def spoil(package: Path) -> None:
    manifest = package / "custom_pypto_plugin.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    document["core_abi"] = [1, 99]
    manifest.write_text(json.dumps(document), encoding="utf-8")

"""Truncate the manifest, as a full disk would."""

from __future__ import annotations

from pathlib import Path


def spoil(package: Path) -> None:
    manifest = package / "custom_pypto_plugin.json"
    manifest.write_text(manifest.read_text(encoding="utf-8")[:100], encoding="utf-8")

"""Give the op another argument in the manifest, as a half-finished update would."""

from __future__ import annotations

from pathlib import Path


def spoil(package: Path) -> None:
    manifest = package / "custom_pypto_plugin.json"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace("(Tensor self)", "(Tensor self, int k)"), encoding="utf-8")

"""Op plugins as folders that Hugging Face kernels loads."""

from __future__ import annotations

from .folder import write_folder

__all__ = ["write_folder"]

"""What core derives from the contract of an op: fake kernel, NPU limits, converter."""

from __future__ import annotations

from .arguments import arguments
from .limits import check_limits, fits

__all__ = ["arguments", "check_limits", "fits"]

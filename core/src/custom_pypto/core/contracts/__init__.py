"""Derives the fake kernel, the NPU limits, the converter and the cost from an op's contract.

Functions here import what evaluates a contract at their first call: importing core must not wait
for that.
"""

from __future__ import annotations

from .arguments import bind_arguments
from .cost import count_bytes, count_flops
from .limits import check_limits, supports

__all__ = ["bind_arguments", "check_limits", "count_bytes", "count_flops", "supports"]

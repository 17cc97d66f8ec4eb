"""Derives the fake kernel, the NPU limits and the converter from the contract of an op.

Functions here import what evaluates a contract at their first call: importing core must not wait
for that.
"""

from __future__ import annotations

from .arguments import bind_arguments
from .limits import check_limits, supports

__all__ = ["bind_arguments", "check_limits", "supports"]

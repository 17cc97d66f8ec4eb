"""Importing this package lets torch_npu, imported afterwards, run without an NPU and without CANN.

It is for tests of host-side logic: what is marshalled, in what order, and what happens when a call
fails. It says nothing of an NPU's speed or numerics.
"""

from __future__ import annotations

from .activation import activate
from .faults import (
    calls,
    damage,
    delay,
    disarm,
    disarm_function,
    drain,
    fail,
    fail_function,
    live_objects,
    lose_device,
)

__all__ = [
    "activate",
    "calls",
    "damage",
    "delay",
    "disarm",
    "disarm_function",
    "drain",
    "fail",
    "fail_function",
    "live_objects",
    "lose_device",
]

activate()

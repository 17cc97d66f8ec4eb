"""Locks that a fork waits for, so that other threads first finish what they have begun.

A child has only the thread that forked. It would wait for ever for a lock that another thread held,
or for an import that another thread had begun.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

LIMIT_S = 10.0
"""Seconds that a fork waits at most: the other thread may itself wait for the fork."""
T = TypeVar("T")


class ForkLock:
    """Holds `lock`: a thread may enter it again, and a forked child gets a new one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


FIRST_USE = ForkLock()
"""Held while something is computed, or a module of ours imported, at first use.

A thread that holds it must not wait for another lock.
"""
LOADING = ForkLock()
"""Held while core is imported, and while plugins are loaded."""
# LOADING first: loading plugins takes LOADING, then FIRST_USE.
_ALL = (LOADING, FIRST_USE)


def _wait() -> None:
    end = time.monotonic() + LIMIT_S
    for each in _ALL:
        each.lock.acquire(timeout=max(0, end - time.monotonic()))


def _go_on() -> None:
    for each in _ALL:
        # After a time-out this thread does not hold the lock.
        with suppress(RuntimeError):
            each.lock.release()


def _renew() -> None:
    for each in _ALL:
        each.lock = threading.RLock()


os.register_at_fork(before=_wait, after_in_parent=_go_on, after_in_child=_renew)


class cached(cached_property[T]):  # noqa: N801
    """`functools.cached_property`, whose own lock a fork does not wait for before Python 3.12."""

    if not TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute it; Python finds it in the object from now on."""
            with FIRST_USE.lock:
                return super().__get__(instance, owner)

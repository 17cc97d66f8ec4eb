"""Locks that a fork waits for, so that other threads first finish what they have begun.

A child has only the thread that forked. It would wait for ever for a lock that another thread held,
or for an import that another thread had begun.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

LIMIT_S = 10.0
"""Seconds that a fork waits at most: the other thread may itself wait for the fork."""
T = TypeVar("T")


class ForkLock:
    """Enter its `lock`, which a thread may do again; a child has a new one."""

    def __init__(self) -> None:
        """Make the lock."""
        self._renew()
        os.register_at_fork(
            before=lambda: self.lock.acquire(timeout=LIMIT_S),
            after_in_parent=self._go_on,
            after_in_child=self._renew,
        )

    def _renew(self) -> None:
        self.lock = threading.RLock()

    def _go_on(self) -> None:
        # It has not got the lock if it waited too long.
        with suppress(RuntimeError):
            self.lock.release()


# A fork takes the last one first, as who loads plugins takes both.
FIRST_USE = ForkLock()
"""For what a first use computes, and imports of our own; who has it waits for no other lock."""
LOADING = ForkLock()
"""For the import of core, and for loading plugins."""


class cached(cached_property[T]):  # noqa: N801
    """`functools.cached_property`, whose own lock a fork does not wait for before Python 3.12."""

    if not TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Compute it; Python finds it in the object from now on."""
            with FIRST_USE.lock:
                return super().__get__(instance, owner)

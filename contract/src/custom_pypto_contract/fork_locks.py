"""Locks that a fork waits for, so that a child has whole what other threads were about to make.

A child has only the thread that forked: it would wait for ever for a lock, or for the import of a
module, that another thread had begun with.
"""

from __future__ import annotations

import os
import threading

LIMIT_S = 10.0
"""Seconds that a fork waits at most: the other thread may itself wait for the fork."""


class ForkLock:
    """Enter its `lock`, which a thread may do again; a child has a new one."""

    def __init__(self) -> None:
        """Make the lock."""
        self._renew()
        os.register_at_fork(
            before=self._wait, after_in_parent=self._go_on, after_in_child=self._renew
        )

    def _renew(self) -> None:
        self.lock = threading.RLock()
        self._forking: set[int] = set()

    def _wait(self) -> None:
        if self.lock.acquire(timeout=LIMIT_S):
            self._forking.add(threading.get_ident())

    def _go_on(self) -> None:
        if (thread := threading.get_ident()) in self._forking:
            self._forking.remove(thread)
            self.lock.release()


# A fork takes the last one first, as who loads plugins takes both.
FIRST_USE = ForkLock()
"""For imports of our own modules at a first use; who has it waits for no other lock."""
LOADING = ForkLock()
"""For the import of core, and for loading plugins."""

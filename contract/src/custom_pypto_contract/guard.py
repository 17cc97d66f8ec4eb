"""Stands between a child and its parent: when either ends, it ends what the child started.

``python guard.py <pipe> <command> ...`` runs a command so. The parent alone has the other end of
the pipe, which closes however the parent ends. No foreign code runs in the guard.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import resource
import signal
import sys
import time

_GRACE_S = 0.5


def guard(pipe: int) -> None:
    """Fork, and return in the child; the caller becomes the guard, and ends as the child does."""
    # A terminal's signals are for the parent.
    os.setsid()
    child = os.fork()
    if child == 0:
        os.close(pipe)
        os.setpgid(0, 0)
        return
    _thread.start_new_thread(_kill, (child, pipe))
    # Until the child is reaped, no other process can get its number.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _kill(child)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if status != -signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _kill(child: int, pipe: int | None = None) -> None:
    """End the child's process group; if there is a pipe, once it is closed."""
    if pipe is not None:
        os.read(pipe, 1)
        # ninja has its compilers in other groups, and ends them if it is asked to end.
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGTERM)
        time.sleep(_GRACE_S)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)


if __name__ == "__main__":
    guard(int(sys.argv[1]))
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")

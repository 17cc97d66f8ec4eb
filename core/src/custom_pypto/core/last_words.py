"""Has a process that ends or hangs while a plugin loads say which plugin it was.

- A crash (a fatal signal, also of a stack overflow) and a hang print the stack, by `faulthandler`;
  the stack has a line that names the plugin.
- exit() of C flushes a stream that holds a text; the text is dropped once the plugin has loaded.

Nothing in a process can speak after _exit(), os._exit() or SIGKILL.
"""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from custom_pypto_discovery.environment import DISABLE
from custom_pypto_discovery.installed_plugin import LOADING
from custom_pypto_discovery.printable import escape

from custom_pypto.core.errors import logger

STACKS_AFTER_S = 10.0
"""Seconds that all plugins together may take before stacks are printed."""

_CALL = compile("load()", "", "exec")
_SIZE = 1024
_IOFBF = 0

Run = Callable[[str, Callable[[], None]], None]
"""Calls a function that loads the plugin of a name."""


@contextmanager
def last_words() -> Iterator[Run]:
    """Watch what loads until the context ends."""
    with ExitStack() as undo:
        file = _standard_error()
        write: Callable[[str], None] = _ignore
        if file is not None:
            write = undo.enter_context(_exit_text(file))
            if not faulthandler.is_enabled():
                faulthandler.enable(file, all_threads=False)
                undo.callback(faulthandler.disable)
            faulthandler.dump_traceback_later(STACKS_AFTER_S, file=file)
            undo.callback(_cancel_in, os.getpid())

        def run(plugin: str, load: Callable[[], None]) -> None:
            logger.debug("%s: loading", plugin, extra={LOADING: plugin})
            text = f"the plugin {escape(plugin)!r} is loading; {DISABLE}={escape(plugin)} skips it"
            write(f"custom_pypto: exit() was called while {text}\n")
            # faulthandler prints the names of files, and no values.
            exec(_CALL.replace(co_filename=f"<{text}>"), {"load": load})
            write("")

        yield run


def _cancel_in(process: int) -> None:
    """Cancel the timer in the process that set it; a fork has no timer, and would wait for it."""
    if os.getpid() == process:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def _exit_text(file: int) -> Iterator[Callable[[str], None]]:
    """Give a function that replaces the text which exit() writes to the descriptor `file`."""
    c = ctypes.CDLL(None)
    c.fdopen.restype = ctypes.c_void_p
    buffer = ctypes.create_string_buffer(_SIZE)
    stream = ctypes.c_void_p(c.fdopen(os.dup(file), b"w"))
    c.setvbuf(stream, buffer, _IOFBF, ctypes.c_size_t(_SIZE))

    def write(text: str) -> None:
        c.__fpurge(stream)
        # A text that filled the buffer would be written at once.
        c.fputs(text.encode("ascii", "backslashreplace")[: _SIZE - 1], stream)

    try:
        yield write
    finally:
        c.__fpurge(stream)
        c.fclose(stream)


def _ignore(text: str) -> None:
    del text


def _standard_error() -> int | None:
    """Return the descriptor of standard error; None if nothing can be written to it."""
    try:
        file: int = sys.__stderr__.fileno()  # type: ignore[union-attr]
        is_written = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except (AttributeError, OSError, ValueError):
        # There is none, it is closed, or a program that embeds Python has replaced it.
        return None
    return file if is_written else None

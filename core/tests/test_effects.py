"""What core does outside of its process: nothing, whatever plugins are installed."""

from __future__ import annotations

import pytest
from plugin_factory import Site, link

# Audit hooks see what Python does; core's own C++ neither writes files nor opens sockets.
WATCHED = """
import os, sys
seen = []
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ALWAYS = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.mkdir",
          "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown",
          "os.truncate", "os.utime", "shutil.", "tempfile.", "urllib.", "http.")

def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        seen.append(f"open {arguments[0]!r}")
    elif event.startswith(ALWAYS):
        seen.append(event)

sys.dont_write_bytecode = True
sys.addaudithook(watch)
"""


def test_importing_core_and_calling_ops_writes_nothing_and_uses_no_network(site: Site) -> None:
    site.install("first")
    site.install("broken", "raise RuntimeError")
    site.install("changed").library.write_bytes(b"other")
    given = site.run(
        WATCHED,
        """
        import warnings; warnings.simplefilter("ignore")
        import custom_pypto.core as core, torch
        torch.ops.custom_pypto.first(torch.ones(2))
        core.plugins(), core.ops(), core.contract("first"), core.cpu_isa("first")
        core.load_new()
        ours = list(seen)
        """,
        f"open({str(site.folder / 'control')!r}, 'w').close(); give([ours, seen])",
    )
    assert given == [[], [f"open {str(site.folder / 'control')!r}"]]


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["info", "first"]])
def test_commands_write_nothing_and_use_no_network(site: Site, command: list[str]) -> None:
    site.install("first")
    link(site.folder, "custom_pypto_cli", "custom_pypto_build")
    given = site.run(
        WATCHED,
        f"""
        import contextlib, io
        from custom_pypto_cli import main
        with contextlib.redirect_stdout(io.StringIO()):
            assert main({command}) == 0
        # What runs in another process reads from the null device.
        give([each for each in seen if each not in ("subprocess.Popen", "open '/dev/null'")])
        """,
    )
    assert given == []

"""ninja, and a compiler that it started, end with the process that builds."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = """
rule compile
  command = echo $$$$ > {}; exec sleep 1000
build object: compile
"""
BUILD = """
import signal, sys
from pathlib import Path
from custom_pypto_build.ninja import run_ninja
# Whoever started pytest may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
run_ninja(Path(sys.argv[1]), Path(sys.argv[1]).parent)
"""


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_compiler_ends_with_the_build(tmp_path: Path, end: str) -> None:
    os.mkfifo(started := tmp_path / "started")
    (file := tmp_path / "build.ninja").write_text(COMPILER.format(started))
    command = [sys.executable, "-c", BUILD, str(file)]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=null, stderr=null) as build:
        compiler = os.pidfd_open(int(started.read_text()))
        build.send_signal(signal.Signals[end])
    assert select.select([compiler], [], [], 60)[0], "it goes on"
    os.close(compiler)

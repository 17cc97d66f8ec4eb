"""ninja, and a compiler that it started, end with the process that builds."""

import os
import select
import subprocess
import sys
from pathlib import Path

COMPILER = """
rule compile
  command = echo $$$$ > {}; exec sleep 1000
build object: compile
"""
BUILD = """
import sys
from pathlib import Path
from custom_pypto_build.ninja import run_ninja
run_ninja(Path(sys.argv[1]), Path(sys.argv[1]).parent)
"""


def test_a_compiler_ends_with_the_build(tmp_path: Path) -> None:
    """However the build ends: contract/tests/test_guarded.py."""
    os.mkfifo(started := tmp_path / "started")
    (file := tmp_path / "build.ninja").write_text(COMPILER.format(started))
    command = [sys.executable, "-c", BUILD, str(file)]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=null, stderr=null) as build:
        compiler = os.pidfd_open(int(started.read_text()))
        build.kill()
    assert select.select([compiler], [], [], 60)[0], "it goes on"
    os.close(compiler)

"""Run environments of tox one after another, whatever fails: ``run_environments.py NAME ...``.

A table ends the output. The status is 1 if an environment failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

_COUNTS = re.compile(r"^=* ?(\d+ (?:passed|failed|error).*) in [\d.]+s\b", re.M)
_REASON = re.compile(r"^(?:FAILED|ERROR:?|E  |\w+Error:) +(.+)", re.M)


def read_outcome(status: int, output: str) -> str:
    """Return what pytest counted, and why the environment failed if it did."""
    output = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = _COUNTS.findall(output)
    if status:
        reason = _REASON.search(output)
        found.append(reason[1] if reason else f"exit status {status}")
    return "; ".join(found)


def main(names: list[str]) -> int:
    """Run the environments; return 1 if one failed."""
    rows, failed = [], False
    for name in names:
        begin, output = time.monotonic(), ""
        command = [sys.executable, "-m", "tox", "run", "-e", name]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                output += line
        status = process.returncode
        failed |= status != 0
        result, seconds = "failed" if status else "ok", time.monotonic() - begin
        rows.append(f"{name:<23}{result:<8}{seconds:>7.0f}  {read_outcome(status, output)}")
    print(f"\n{'environment':<23}result  seconds  counts, and the first reason", *rows, sep="\n")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

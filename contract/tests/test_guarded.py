"""guarded: a child ends with its parent, however that ends, and so does what the child started."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from custom_pypto_contract import guarded

# Ignores every signal, holds Python's lock for ever, and has started another process.
CHILD = """
import os, re, signal, subprocess, sys
for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(each, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
with open(sys.argv[1], "w") as started:
    print(os.getpid(), other.pid, file=started)
re.match("(a|aa)*$", "a" * 200 + "b")
"""
# Whoever started pytest may have had it ignore this, as shells do.
SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
FORK = """
import os, signal, sys
from custom_pypto_contract.guard import guard
from custom_pypto_contract.guarded import lifeline
with lifeline() as pipe:
    guarded = os.fork()
    if guarded == 0:
        guard(pipe)
"""
PARENTS = {
    "runs a program": SIGNALS
    + """
import sys
from custom_pypto_contract import guarded
guarded.run([sys.executable, "-c", *sys.argv[1:]])
""",
    "forks": f"""{SIGNALS}{FORK}
        exec(sys.argv.pop(1))
    os.waitpid(guarded, 0)
""",
}
LIMIT_S = 60.0


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("parent", PARENTS)
def test_child_and_grandchild_end_with_their_parent(tmp_path: Path, parent: str, end: str) -> None:
    os.mkfifo(started := tmp_path / "started")
    with subprocess.Popen(
        [sys.executable, "-c", PARENTS[parent], CHILD, str(started)], stderr=subprocess.DEVNULL
    ) as process:
        family = [os.pidfd_open(int(each)) for each in started.read_text("ascii").split()]
        process.send_signal(signal.Signals[end])
    for each in family:
        assert select.select([each], [], [], LIMIT_S)[0], "it goes on"
        os.close(each)
    assert len(family) == 2


def test_what_a_child_left_behind_ends_with_it(tmp_path: Path) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    code = (
        "import subprocess, sys\n"
        "other = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        f"subprocess.Popen(other, stdout=open({str(fifo)!r}, 'w'))"
    )
    assert guarded.run([sys.executable, "-c", code])[0] == 0
    # The end of what nobody can write any more.
    assert select.select([reader], [], [], LIMIT_S)[0], "it goes on"
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_status_output_and_errors_are_those_of_the_program() -> None:
    code = "import os, sys; os.write(1, b'out'); os.write(2, b'error'); sys.exit(7)"
    assert guarded.run([sys.executable, "-c", code]) == (7, "out", "error")


def test_a_program_that_a_signal_ends_or_that_is_not_there_is_named() -> None:
    code = "import os, signal; os.kill(0, signal.SIGSEGV)"
    assert guarded.run([sys.executable, "-c", code])[0] == -signal.SIGSEGV
    status, _, errors = guarded.run(["no-such-program"])
    assert (status, errors) == (1, "no-such-program: No such file or directory\n")


FORKS_IN_BETWEEN = f"""{FORK}
        os.write(1, b"%d\\n" % os.getpid())
        signal.pause()
    fork = os.fork()
    if fork == 0:
        signal.pause()
    os.write(1, b"%d\\n" % fork)
    if sys.stdin.readline() == "die\\n":
        os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(guarded, 0)
"""


@pytest.mark.parametrize("end", ["die", "leave"])
def test_a_fork_that_goes_on_keeps_no_child_of_a_guard_alive(end: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKS_IN_BETWEEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        both = [os.pidfd_open(int(process.stdout.readline())) for _ in range(2)]
        process.stdin.write(f"{end}\n")
        process.stdin.flush()
        ended, _, _ = select.select(both, [], [], LIMIT_S)
        for each in {*both} - {*ended}:
            signal.pidfd_send_signal(each, signal.SIGKILL)
        for each in both:
            os.close(each)
    assert len(ended) == 1

"""custom_pypto_cli.subprocess_call: foreign code cannot take the command line down."""

import os
import shlex
import signal
import sys

import pytest
from custom_pypto_cli import subprocess_call
from custom_pypto_contract import guarded
from plugin_factory import link

UNDONE = "ended with status 0 before it was done, as a call of exit() does"
PRINTS = "print('about to end', flush=True)"
PRINTED = "\nits output ended with:\nabout to end"
# What the code is, and its value or failure.
ENDS: dict[str, tuple[object, str]] = {
    "report({'answer': 42})": ({"answer": 42}, ""),
    "report('x' * 1_000_000)": ("x" * 1_000_000, ""),  # more than a pipe holds
    "print('noise'); os.system('echo more'); report(1)": (1, ""),
    "report(os.environ['CLI_TEST'])": ("set", ""),
    "os.kill(os.getpid(), 11)": (None, "crashed with SIGSEGV"),
    "os._exit(3)": (None, "ended with status 3"),
    "os._exit(0)": (None, UNDONE),
    f"{PRINTS}; os._exit(3)": (None, f"ended with status 3{PRINTED}"),
    f"{PRINTS}; os._exit(0)": (None, f"{UNDONE}{PRINTED}"),
    f"{PRINTS}; os.abort()": (None, f"crashed with SIGABRT{PRINTED}"),
    # Half a report is none, as is one that is nested too deeply.
    "_reports.write('{\"val'); _reports.flush(); os._exit(0)": (None, UNDONE),
    "_reports.write('[' * 100000 + chr(10)); _reports.flush()": (None, UNDONE),
}


@pytest.mark.parametrize("code", ENDS)
def test_an_end_is_a_value_or_a_failure(code):
    outcome = subprocess_call.run(f"import os; {code}", environment={"CLI_TEST": "set"})
    assert (outcome.value, outcome.failure) == ENDS[code]
    assert outcome.ok is not bool(outcome.failure)


def test_an_exception_is_reported_by_its_type_and_text_if_that_is_not_long():
    outcome = subprocess_call.run(r"raise ImportError('first line\nsecond line')")
    assert outcome.failure == "ImportError: first line\nsecond line"
    assert "Traceback" in outcome.trace
    outcome = subprocess_call.run("raise ValueError('x' * 10_000_000)")
    assert outcome.failure.startswith("ValueError: xxx")
    assert len(outcome.failure) < 5000
    assert len(outcome.brief) == 100


DAEMON = """
import subprocess, sys
daemon = subprocess.Popen(
    [sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True
)
report(daemon.pid)
"""


def test_a_daemon_that_keeps_the_pipes_open_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(guarded, "_GRACE_S", 0.1)
    outcome = subprocess_call.run(DAEMON)
    os.kill(outcome.value, signal.SIGKILL)
    assert outcome.ok


def test_the_last_output_is_kept_however_much_there_is(monkeypatch):
    monkeypatch.setattr(guarded, "_MOST_KEPT", 1000)
    flood = "for i in range(99999): print(i, file=sys.stderr); report(i, 'progress')\n"
    outcome = subprocess_call.run(f"{flood}report(7)")
    assert (outcome.value, outcome.progress) == (7, 99998)
    assert outcome.trace.endswith("99998")
    assert len(outcome.trace) <= 1000


def test_the_child_sees_the_modules_of_this_process(monkeypatch, tmp_path):
    (tmp_path / "only_here.py").write_text("def twice(value): return 2 * value\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert subprocess_call.run("import only_here; report(only_here.twice(3))").value == 6
    assert subprocess_call.call(shlex.quote, "two words").value == "'two words'"


@pytest.mark.parametrize("own_path", [sys.path, ["", *sys.path]], ids=["without", "with"])
def test_the_child_does_not_see_the_current_folder(own_path, monkeypatch, tmp_path):
    for module in ("stray_module", "json", "re"):
        (tmp_path / f"{module}.py").write_text("raise RuntimeError('not this one')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", own_path)
    assert subprocess_call.run("report('started')").value == "started"
    assert "No module named 'stray_module'" in subprocess_call.run("import stray_module").failure


def test_progress_is_known_however_a_process_ends() -> None:
    code = "from custom_pypto_cli.subprocess_call import report_progress as tell; import os"
    code += "; tell('a'); tell('b')"
    assert subprocess_call.run(f"{code}; os._exit(0)").progress == "b"
    assert subprocess_call.run(f"{code}; report(1)").progress == "b"
    hung = subprocess_call.run(f"{code}; import signal; signal.pause()", time_limit=5)
    assert (hung.progress, hung.timed_out) == ("b", True)
    assert hung.failure == "did not end within 5 s"
    subprocess_call.report_progress("nobody listens")


@pytest.mark.parametrize(("command", "end"), [("list", "SIGTERM"), ("doctor", "SIGINT")])
def test_a_command_that_is_ended_leaves_no_plugin_that_hangs(site, tmp_path, command, end):
    os.mkfifo(fifo := tmp_path / "fifo")
    code = f"""
        import os, signal
        with open({str(fifo)!r}, "w") as started: started.write(str(os.getpid()))
        signal.pause()
    """
    site.install("hangs", code)
    link(site.folder, "custom_pypto_cli", "custom_pypto_build")
    given = site.run(
        f"""
        import os, select, signal
        from custom_pypto_cli import main
        ended = os.fork()
        if ended == 0:
            # Whoever started pytest may have had it ignore this, as shells do.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            main([{command!r}])
        with open({str(fifo)!r}) as started: hangs = os.pidfd_open(int(started.read()))
        os.kill(ended, signal.{end})
        os.waitpid(ended, 0)
        give(bool(select.select([hangs], [], [], 60)[0]))
        """
    )
    assert given is True

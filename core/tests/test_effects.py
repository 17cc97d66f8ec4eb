"""What core does outside of its process: nothing, whatever plugins are installed."""

import re
from pathlib import Path

import pytest
from custom_pypto_cli import commands
from loading import CHILDREN_HERE
from plugin_factory import Site, link
from wheel_factory import draft

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
# The same in processes that a command starts, in a file that they have open before.
SITECUSTOMIZE = """
log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
class seen:
    append = staticmethod(lambda event: os.write(log, (event + "\\n").encode()))
"""


def test_using_ops_has_no_effect_outside_of_the_process(site: Site) -> None:
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


TABLE = (Path(__file__).parents[2] / "SECURITY.md").read_text("utf-8")
TABLE = TABLE.partition("## What is written where")[2].partition("\n## ")[0]
READING = {
    "check": ["WHEEL"],
    "doctor": [],
    "info": ["first"],
    "list": ["--json"],
    "replay": ["CALLS"],
    "samples": ["first"],
}
# The op has no samples.
STATUS = {"samples": 1}
# What a child would do, all but these commands do in this process. The children of `doctor` are
# real: each begins as those of the others do.
REAL = ("check", "doctor")
# What runs in another process reads from the null device, and reports to a pipe.
OF_CHILDREN = r"subprocess\.Popen|open ('/dev/null'|\d+)"
# `check` unpacks into a temporary folder, and torch's compiler makes a folder for its cache there.
# tempfile first tries whether it can write.
FURTHER = {
    "check": r"tempfile\.mkdtemp|shutil\.rmtree|os\.(mkdir|remove|rmdir)"
    r"|open '.*/(custom-pypto-.*|\w{8})'",
    "replay": r"os\.(mkdir|remove)|open '.*/\w{8}'",
}


def test_the_table_of_what_is_written_has_every_command() -> None:
    row = next(line for line in TABLE.splitlines() if "`custom-pypto doctor`" in line)
    assert "| nothing; torch's compiler," in row
    assert ["check", *re.findall(r"`(?:custom-pypto )?([a-z]+)`", row)] == [*READING]
    named = re.findall(r"^\| (`custom-pypto .*?) \|", TABLE, re.MULTILINE)
    assert set(re.findall(r"`(?:custom-pypto )?([a-z]+)`", " ".join(named))) == {*commands.find()}


@pytest.mark.parametrize("command", READING)
def test_reading_commands_have_no_effect(site: Site, tmp_path: Path, command: str) -> None:
    site.install("first")
    link(site.folder, "custom_pypto_cli", "custom_pypto_build", "custom_pypto_testing")
    (calls := tmp_path / "calls").write_text("no call")
    given = {"WHEEL": str(draft(None).write(tmp_path)), "CALLS": str(calls)}
    arguments = [given.get(each, each) for each in READING[command]]
    (log := tmp_path / "seen").touch()
    (children := tmp_path / "children").mkdir()
    (children / "sitecustomize.py").write_text(WATCHED + SITECUSTOMIZE.format(log=str(log)))
    seen, status = site.run(
        WATCHED,
        "" if command in REAL else CHILDREN_HERE,
        f"""
        import contextlib, io
        from custom_pypto_cli import main
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = main({[command, *arguments]})
        give([seen, status])
        """,
        PYTHONPATH=str(children),
    )
    of_children = log.read_text().splitlines()
    assert bool(of_children) == (command == "doctor")
    allowed = re.compile(f"{OF_CHILDREN}|{FURTHER.get(command, OF_CHILDREN)}")
    seen = [each for each in seen + of_children if not allowed.fullmatch(each)]
    assert (seen, status) == ([], STATUS.get(command, 0))


HEADER = """
aclnnStatus aclnnFirstGetWorkspaceSize(const aclTensor *x, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor);
"""
WRITING = {
    "import": ["--aclnn", "aclnn_first.h", "--output", "written"],
    "lock": ["written"],
    "new": ["written"],
}

# A file that is replaced is first written beside its place.
ALLOWED = (
    r"os\.(mkdir|chmod|rename)|tempfile\.mkstemp"
    r"|open (\d+|'written/.*'|'.*/work/\.written\.\w+')"
)


@pytest.mark.parametrize("command", WRITING)
def test_writing_commands_write_where_their_argument_says(
    site: Site, tmp_path: Path, command: str
) -> None:
    site.install("first")
    link(site.folder, "custom_pypto_cli", "custom_pypto_build", "custom_pypto_testing")
    (work := tmp_path / "work").mkdir()
    (work / "aclnn_first.h").write_text(HEADER)
    seen = site.run(
        WATCHED,
        f"""
        import contextlib, io
        from custom_pypto_cli import main
        os.chdir({str(work)!r})
        with contextlib.redirect_stdout(io.StringIO()):
            main({[command, *WRITING[command]]})
        give(seen)
        """,
    )
    assert {path.name for path in work.iterdir()} == {"aclnn_first.h", "written"}
    assert [each for each in seen if not re.fullmatch(ALLOWED, each)] == []

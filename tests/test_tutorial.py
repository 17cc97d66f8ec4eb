"""docs/tutorial.md: its commands run, in its order, and its edits fit what they change."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from repository import ROOT
from scratch import Scratch, create, run_command

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"^`([\w./]+)`:$|^```(sh|diff|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What `new` writes is tested by tests/test_new_command.py. The page adds a derivative.
TESTS = ("-k", "returns_what or gradients")
PIP = '#!/bin/sh\nexec "{python}" -m pip --python "{venv}" "$@"\n'


@pytest.mark.slow
def test_its_commands_make_a_wheel_that_works_alone(
    tmp_path: Path, new_environment: Callable[..., Scratch], wheel: Callable[[str], Path]
) -> None:
    environment = new_environment("custom_pypto_build", "custom_pypto_testing")
    add_pip(environment)
    [lent] = environment.site_packages.glob("lent.pth")
    variables = {
        "PATH": f"{environment.root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": f"{wheel('custom_pypto_core').parent}",
        # Nothing is timed here. The tests load what is built.
        "CXXFLAGS": "-O0",
        "CUSTOM_PYPTO_BUILD_CHECK": "0",
        "PYTEST_ADDOPTS": shlex.join(TESTS),
    }
    folder = tmp_path
    [first, *later] = (text.splitlines() for _, language, text in steps() if language == "sh")
    said_again = set(first).intersection(chain(*later))
    for file, language, text in steps():
        if language == "python":
            (folder / file).parent.mkdir(parents=True)
            (folder / file).write_text(text, encoding="utf-8")
        elif language == "diff":
            edit(folder / file, text)
        else:
            for command in text.splitlines():
                if command.startswith("cd "):
                    folder /= command.removeprefix("cd ")
                    continue
                if command in said_again and text.splitlines() == first:
                    continue
                if command == "python -m venv bare":
                    # Torch is that of the tests.
                    add_pip(create(folder / "bare", Path(lent.read_text().strip())))
                    continue
                run_command(["sh", "-c", command], folder, variables)


def add_pip(environment: Scratch) -> None:
    """Put the pip that runs the tests into a venv: to install another takes long."""
    pip = environment.root / "bin" / "pip"
    pip.write_text(PIP.format(python=sys.executable, venv=environment.python))
    pip.chmod(0o755)


def steps() -> Iterator[tuple[str, str, str]]:
    """Return file, language and text of each block; the file is the one named last."""
    file = ""
    for named, language, text in STEP.findall(PAGE):
        file = named or file
        if language:
            yield file, language, text


def edit(path: Path, change: str) -> None:
    """Make the change that a diff of neighbouring lines says."""
    lines = change.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] != "+")
    new = "".join(line[1:] for line in lines if line[0] != "-")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), encoding="utf-8")

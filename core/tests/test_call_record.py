"""CUSTOM_PYPTO_RECORD: arguments of calls are kept, in a form from which they can be made again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from plugin_factory import Site
from test_call_log import CORE, install

CAUGHT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {}
"""
WARNED = "give([[str(each.message) for each in caught], result])"


@pytest.fixture
def site(site: Site) -> Site:
    """A site with the plugin of the tests of the log."""
    install(site)
    return site


def calls_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def recorded(site: Site, target: Path, *code: str) -> list[dict[str, Any]]:
    """Run code that keeps its calls in `target`; return them."""
    site.run(CORE, *code, "give(0)", CUSTOM_PYPTO_RECORD=str(target))
    return calls_in(target / "calls.jsonl" if target.is_dir() else target)


def test_a_call_is_kept_once_with_shapes_and_scalars(site: Site, tmp_path: Path) -> None:
    code = "for n in (3, 3, 4): ops.scale(x := torch.ones(2, n), 0.5); ops.scale.default(x, 0.5)"
    call, other = recorded(site, tmp_path / "calls", code)
    assert other["args"][0]["tensor"]["shape"] == [2, 4]
    assert call == {
        "format": 1,
        "op": "scale",
        "schema": (
            "custom_pypto::scale(Tensor x, float factor=1., *, Tensor? bias=None) -> Tensor"
        ),
        "args": [
            {"tensor": {"dtype": "float32", "shape": [2, 3], "strides": [3, 1], "device": "cpu"}},
            0.5,
        ],
        "kwargs": {},
    }


def test_tensors_are_kept_in_a_folder(site: Site, tmp_path: Path) -> None:
    code = "for value in (4., 5.): ops.scale(torch.full((9, 2), value)[:, 0])"
    for value, call in zip((4.0, 5.0), recorded(site, tmp_path, code), strict=True):
        tensors = torch.load(tmp_path / call["tensors"], weights_only=True)
        x = call["args"][0]["tensor"]
        assert (x["saved"], x["strides"]) == (0, [2])
        assert tensors[0].tolist() == [value] * 9
        # Not of what surrounds the view.
        assert tensors[0].untyped_storage().nbytes() == 9 * 4


def test_calls_without_values_are_not_kept(site: Site, tmp_path: Path) -> None:
    code = """
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        ops.scale(torch.ones(2))
    ops.scale(torch.ones(3, device="meta"))
    without_memory = torch.ones(2)
    without_memory.untyped_storage().resize_(0)
    for arguments in (), (without_memory,), (torch.ones(2).to_sparse(),):
        try: ops.scale(*arguments)
        except (RuntimeError, TypeError): pass
    ops.scale(torch.ones(4))
    """
    [call] = recorded(site, tmp_path, code)
    assert call["args"][0]["tensor"]["shape"] == [4]


def test_a_call_that_ends_the_process_is_logged_and_kept(site: Site, tmp_path: Path) -> None:
    paths = {"CUSTOM_PYPTO_LOG": tmp_path / "log", "CUSTOM_PYPTO_RECORD": tmp_path / "calls"}
    variables = {name: str(path) for name, path in paths.items()}
    assert site.start(CORE, "ops.scale(torch.ones(2), 0.0)", **variables).returncode != 0
    [logged], [kept] = (path.read_text("utf-8").splitlines() for path in paths.values())
    assert logged.endswith("scale(x=float32[2], factor=0.0)")
    assert json.loads(kept)["args"][1] == 0.0


@pytest.mark.parametrize(("limit", "kept"), [("MOST_CALLS", 1), ("MOST_BYTES", 0)])
def test_a_limit_is_a_warning(site: Site, tmp_path: Path, limit: str, kept: int) -> None:
    target = tmp_path if limit == "MOST_BYTES" else tmp_path / "calls"
    code = "result = [ops.scale(torch.ones(size)).numel() for size in (2, 3, 4)]"
    # Tensors above the limit are not copied.
    setup = f"from custom_pypto.core import call_record as r; r.{limit} = 1; r.copy_values = None"
    [text], results = site.run(
        setup, CORE, CAUGHT.format(code), WARNED, CUSTOM_PYPTO_RECORD=str(target)
    )
    assert results == [2, 3, 4]
    assert "this process has kept as much as it may" in text
    *calls, last = calls_in(target / "calls.jsonl" if target.is_dir() else target)
    assert len(calls) == kept
    assert last["ended"] in text


def test_a_fork_does_not_wait_for_a_thread_that_keeps_a_call(site: Site, tmp_path: Path) -> None:
    code = """
    import os, threading
    from custom_pypto.core import call_record
    encode, keeping, forked = call_record.encode, threading.Event(), threading.Event()
    def wait_in(*args):
        keeping.set()
        forked.wait()
        return encode(*args)
    call_record.encode = wait_in
    thread = threading.Thread(target=ops.scale, args=(torch.ones(2),))
    thread.start()
    keeping.wait()
    call_record.encode = encode
    child = os.fork()
    if not child:
        ops.scale(torch.ones(3))
        os._exit(0)
    os.waitpid(child, 0)
    forked.set()
    thread.join()
    """
    calls = recorded(site, tmp_path / "calls", code)
    assert [call["args"][0]["tensor"]["shape"] for call in calls] == [[3], [2]]


_UNOPENED = (
    "{}={}: it cannot be opened: {}; set it to a file that you can write, or to 0; no further calls"
    " are written there"
)


@pytest.mark.parametrize(
    ("variable", "place", "error"),
    [
        ("CUSTOM_PYPTO_LOG", ".", "Is a directory"),
        ("CUSTOM_PYPTO_RECORD", "pipe", "No such device or address"),
        ("CUSTOM_PYPTO_RECORD", "c" * 300, "File name too long"),
    ],
)
def test_a_file_that_cannot_be_opened_is_a_warning(
    site: Site, tmp_path: Path, variable: str, place: str, error: str
) -> None:
    # Nobody reads it.
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / place)
    code = "result = torch.ops.custom_pypto.scale(torch.ones(1)).item()"
    given = site.run(CAUGHT.format(CORE), code, WARNED, **{variable: path})
    assert given == [[_UNOPENED.format(variable, path, error)], 1]


VARIABLES = ("CUSTOM_PYPTO_LOG", "CUSTOM_PYPTO_RECORD")
_CALL = "ops.scale(torch.ones(2))"
# A file can have no more bytes than this.
_FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize(("room", "warnings"), [(0, "always"), (50, "always"), (0, "error")])
def test_a_full_disk(site: Site, tmp_path: Path, variable: str, room: int, warnings: str) -> None:
    file = tmp_path / "calls"
    before = "import logging, os; logging.basicConfig(stream=open(os.devnull, 'w'))"
    calls = "result = [ops.scale(torch.ones([2] + [1] * 60)).numel() for _ in range(3)]"
    given = site.run(
        CORE,
        f"{before}; {_CALL}",
        _FULL,
        f"limit(os.path.getsize({str(file)!r}) + {room})",
        CAUGHT.format(calls).replace("always", warnings),
        f"limit(resource.RLIM_INFINITY); {WARNED}",
        **{variable: str(file)},
    )
    text = f"{variable}={file}: it cannot be written: File too large; no further calls are written"
    assert given == [[f"{text} there"] if warnings == "always" else [], [2, 2, 2]]
    left = file.read_text("utf-8")
    assert "scale" in left.splitlines()[0]
    site.run(CORE, _CALL, "give(0)", **{variable: str(file)})
    assert file.read_text("utf-8")[len(left) :].startswith("\n") is not left.endswith("\n")


@pytest.mark.parametrize("variable", VARIABLES)
def test_processes_add_whole_lines_to_a_private_file(
    site: Site, tmp_path: Path, variable: str
) -> None:
    file = tmp_path / "calls"
    code = """
    children = []
    for number in range(4):
        children.append(os.fork())
        if not children[-1]:
            for size in range(50): ops.scale(torch.ones(size, 1 + number))
            os._exit(0)
    for each in children: os.waitpid(each, 0)
    """
    site.run("import os; os.umask(0)", CORE, code, "give(0)", **{variable: str(file)})
    assert file.stat().st_mode & 0o777 == 0o600
    lines = file.read_text("utf-8").splitlines()
    assert len({*lines}) == 200
    assert all(line.startswith(("custom_pypto[", "{")) for line in lines)
    assert all(line.endswith((")", "}")) for line in lines)


def test_tensors_that_cannot_be_saved_leave_no_file(site: Site, tmp_path: Path) -> None:
    code = "result = ops.scale(torch.ones(100_000)).numel()"
    (target := tmp_path / "target").mkdir()
    texts, result = site.run(
        CORE,
        _FULL,
        f"limit(4096)\n{CAUGHT.format(code)}",
        f"limit(resource.RLIM_INFINITY); {WARNED}",
        CUSTOM_PYPTO_RECORD=str(target),
    )
    assert result == 100_000
    assert [*target.iterdir()] == [target / "calls.jsonl"]
    [text] = texts
    assert "tensors cannot be saved" in text

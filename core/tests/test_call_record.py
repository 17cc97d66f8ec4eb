"""CUSTOM_PYPTO_RECORD: arguments of calls are kept, in a form from which they can be made again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from custom_pypto.core.recorded_call import (
    MOST_INTEGERS,
    NotRecordableError,
    decode,
    encode,
)
from plugin_factory import Site
from test_call_log import CORE, install

CAUGHT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {}
"""
WARNED = "give([[str(each.message) for each in caught], result])"


def calls_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def recorded(site: Site, target: Path, *code: str) -> list[dict[str, Any]]:
    """Run code that keeps its calls in `target`; return them."""
    site.run(CORE, *code, "give(0)", CUSTOM_PYPTO_RECORD=str(target))
    return calls_in(target / "calls.jsonl" if target.is_dir() else target)


def test_a_call_is_kept_with_shapes_and_scalars(site: Site, tmp_path: Path) -> None:
    install(site)
    [call] = recorded(site, tmp_path / "calls", "ops.scale(torch.ones(2, 3), 0.5, bias=None)")
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
        "kwargs": {"bias": None},
    }


def test_equal_calls_are_kept_once(site: Site, tmp_path: Path) -> None:
    install(site)
    code = "for size in (2, 2, 3): ops.scale(torch.ones(size)); ops.scale.default(torch.ones(size))"
    assert len(recorded(site, tmp_path / "calls", code)) == 2


def test_a_call_that_ends_the_process_is_kept(site: Site, tmp_path: Path) -> None:
    install(site)
    file = tmp_path / "calls"
    done = site.start(CORE, "ops.scale(torch.ones(2), 0.0)", CUSTOM_PYPTO_RECORD=str(file))
    assert done.returncode != 0
    assert calls_in(file)[0]["args"][1] == 0.0


def test_tensors_are_kept_in_a_folder(site: Site, tmp_path: Path) -> None:
    install(site)
    code = "for value in (4., 5.): ops.scale(torch.full((9, 2), value)[:, 0])"
    for value, call in zip((4.0, 5.0), recorded(site, tmp_path, code), strict=True):
        tensors = torch.load(tmp_path / call["tensors"], weights_only=True)
        [x] = decode(call["args"], tensors, torch.Generator())
        assert x.tolist() == [value] * 9
        assert x.stride() == (2,)
        # Not of what surrounds the view.
        assert tensors[0].untyped_storage().nbytes() == 9 * 4


def test_of_overloads_the_one_that_runs_is_kept(site: Site, tmp_path: Path) -> None:
    schemas = ["pick(Tensor x) -> Tensor", "pick.int(int x) -> int"]
    site.install("acme", ops=schemas, with_library=True)
    code = """
    import contextlib
    for each in (torch.ones(2), 3):
        with contextlib.suppress(Exception):
            ops.pick(each)
    """
    names = [call["op"] for call in recorded(site, tmp_path / "calls", code)]
    assert names == ["pick", "pick.int"]


def test_calls_without_values_are_not_kept(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        ops.scale(torch.ones(2))
    ops.scale(torch.ones(3, device="meta"))
    try: ops.scale()
    except (RuntimeError, TypeError): pass
    ops.scale(torch.ones(4))
    """
    [call] = recorded(site, tmp_path, code)
    assert call["args"][0]["tensor"]["shape"] == [4]


def test_modes_of_the_user_see_nothing_of_it(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    from torch.utils._python_dispatch import TorchDispatchMode
    seen = []
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))
    x = torch.arange(6).reshape(2, 3).t()
    with Mode():
        ops.scale(x)
    assert seen == ["custom_pypto.scale.default"], seen
    """
    # The mode calls it again.
    assert len(recorded(site, tmp_path, code)) == 2


def test_calls_are_logged_and_kept(site: Site, tmp_path: Path) -> None:
    install(site)
    paths = {"CUSTOM_PYPTO_LOG": tmp_path / "log", "CUSTOM_PYPTO_RECORD": tmp_path / "calls"}
    variables = {name: str(path) for name, path in paths.items()}
    site.run(CORE, "ops.scale(torch.ones(2))", "give(0)", **variables)
    assert [len(path.read_text().splitlines()) for path in paths.values()] == [1, 1]


@pytest.mark.parametrize(("limit", "kept"), [("MOST_CALLS", 1), ("MOST_BYTES", 0)])
def test_at_a_limit_it_warns_and_keeps_no_more(
    site: Site, tmp_path: Path, limit: str, kept: int
) -> None:
    install(site)
    target = tmp_path if limit == "MOST_BYTES" else tmp_path / "calls"
    code = "result = [ops.scale(torch.ones(size)).numel() for size in (2, 3, 4)]"
    set_limit = f"from custom_pypto.core import call_record; call_record.{limit} = 1"
    [text], results = site.run(
        set_limit, CORE, CAUGHT.format(code), WARNED, CUSTOM_PYPTO_RECORD=str(target)
    )
    assert results == [2, 3, 4]
    assert "this process has kept as much as it may" in text
    assert len(calls_in(target / "calls.jsonl" if target.is_dir() else target)) == kept


def test_tensors_without_their_memory_are_not_kept(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    x = torch.ones(2)
    x.untyped_storage().resize_(0)
    try: ops.scale(x)
    except RuntimeError: pass
    """
    assert recorded(site, tmp_path, code) == []


def test_tensors_above_the_limit_are_not_copied(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    import warnings
    from custom_pypto.core import call_record
    call_record.copy_values = None
    warnings.simplefilter("ignore")
    x = torch.ones(1).expand(2**40)
    try: ops.scale(x)
    except RuntimeError: pass
    """
    assert recorded(site, tmp_path, code) == []


def test_a_fork_does_not_wait_for_a_thread_that_keeps_a_call(site: Site, tmp_path: Path) -> None:
    install(site)
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
    sizes = [
        call["args"][0]["tensor"]["shape"] for call in recorded(site, tmp_path / "calls", code)
    ]
    assert sizes == [[3], [2]]


_LOG = " is {!r}, which cannot be opened: {}; calls are not logged; set it to 1 for standard error,"
_LOG += " or to the path of a file"
_RECORD = ": {} cannot be opened: {}; no further calls are kept"


@pytest.mark.parametrize(
    ("variable", "text", "place", "error"),
    [
        ("CUSTOM_PYPTO_LOG", _LOG, ".", "Is a directory"),
        ("CUSTOM_PYPTO_LOG", _LOG, "pipe", "No such device or address"),
        ("CUSTOM_PYPTO_RECORD", _RECORD, "pipe", "No such device or address"),
        ("CUSTOM_PYPTO_RECORD", _RECORD, "missing/calls", "No such file or directory"),
        ("CUSTOM_PYPTO_RECORD", _RECORD, "c" * 300, "File name too long"),
    ],
)
def test_a_file_that_cannot_be_opened_is_a_warning(
    site: Site, tmp_path: Path, variable: str, text: str, place: str, error: str
) -> None:
    install(site)
    # Nobody reads it.
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / place)
    code = "result = torch.ops.custom_pypto.scale(torch.ones(1)).item()"
    given = site.run(CAUGHT.format(CORE), code, WARNED, **{variable: path})
    assert given == [[variable + text.format(path, error)], 1]


def again(value: Any, *, with_tensors: bool) -> Any:
    tensors: list[torch.Tensor] | None = [] if with_tensors else None
    kept = json.loads(json.dumps(encode(value, tensors)))
    return decode(kept, tensors, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "value", [None, True, 3, float("inf"), "text", [1, None], torch.float16, torch.device("cpu")]
)
def test_scalars_come_back(value: Any) -> None:
    assert again(value, with_tensors=False) == value


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool, torch.complex64])
@pytest.mark.parametrize("with_tensors", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[:, :1].expand(4, 7),
        lambda x: x[:0],
        lambda x: x[0, 0],
    ],
)
def test_tensors_come_back_with_their_strides(
    change: Any, dtype: torch.dtype, with_tensors: bool
) -> None:
    x = change((torch.arange(24) % 2).reshape(4, 6).to(dtype))
    made = again(x, with_tensors=with_tensors)
    assert (made.shape, made.stride(), made.dtype) == (x.shape, x.stride(), dtype)
    # Integers are kept in any case.
    if with_tensors or dtype in (torch.int8, torch.bool):
        assert made.equal(x)


def test_a_tensor_whose_elements_overlap_comes_back_with_its_values() -> None:
    x = torch.arange(5.0).unfold(0, 3, 1)
    assert again(x, with_tensors=True).equal(x)


def test_many_integers_come_back_as_zeros() -> None:
    assert not again(torch.ones(MOST_INTEGERS + 1, dtype=torch.int64), with_tensors=False).any()


@pytest.mark.parametrize(
    "value", [torch.ones(2).to_sparse(), torch.ones(2, device="meta"), object()]
)
def test_what_has_no_form_is_refused(value: Any) -> None:
    with pytest.raises(NotRecordableError):
        encode(value, [])

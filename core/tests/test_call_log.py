"""CUSTOM_PYPTO_LOG: calls of ops are logged before they run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from plugin_factory import Site

CORE = "import torch, custom_pypto.core as core; ops = torch.ops.custom_pypto"
SCHEMAS = ["scale(Tensor x, float factor=1.0, *, Tensor? bias=None) -> Tensor"]
KERNELS = """
import os, torch
from custom_pypto_plugin import hookimpl

def scale(x, factor=1.0, *, bias=None):
    if factor == 0:
        os.abort()
    return x * factor

@hookimpl
def custom_pypto_kernels(): return {"scale": {"CPU": scale}}

@hookimpl
def custom_pypto_fakes(): return {"scale": lambda x, factor=1.0, *, bias=None: torch.empty_like(x)}
"""


def install(site: Site) -> None:
    site.install("acme", KERNELS, ops=SCHEMAS, with_library=False)


def calls_in(text: str) -> list[str]:
    """The logged calls, each with process and thread removed."""
    return re.findall(r"^custom_pypto\[\d+\.\d+\] (.*)$", text, re.MULTILINE)


def logged(site: Site, folder: Path, *code: str) -> list[str]:
    """Run code that logs calls to a file; return them."""
    file = folder / "calls.log"
    site.run(CORE, *code, "give(0)", CUSTOM_PYPTO_LOG=str(file))
    return calls_in(file.read_text(encoding="utf-8"))


def test_a_call_is_logged_with_shapes_dtypes_and_scalars(site: Site, tmp_path: Path) -> None:
    install(site)
    code = "ops.scale(torch.ones(2, 3), 0.5, bias=torch.ones(4, dtype=torch.float16))"
    assert logged(site, tmp_path, code) == ["scale(x=float32[2, 3], factor=0.5, bias=float16[4])"]


def test_a_call_of_an_overload_is_logged_once(site: Site, tmp_path: Path) -> None:
    install(site)
    assert logged(site, tmp_path, "ops.scale.default(torch.ones(2))") == ["scale(x=float32[2])"]


def test_what_is_unusual_of_a_tensor_is_logged(site: Site, tmp_path: Path) -> None:
    install(site)
    code = "ops.scale(torch.ones(2, 3).t()); ops.scale(torch.ones(2, device='meta'))"
    assert logged(site, tmp_path, code) == [
        "scale(x=float32[3, 2] with strides [1, 3])",
        "scale(x=float32[2] on meta)",
    ]


def test_a_call_that_ends_the_process_is_logged(site: Site, tmp_path: Path) -> None:
    install(site)
    file = tmp_path / "calls.log"
    done = site.start(CORE, "ops.scale(torch.ones(2), 0.0)", CUSTOM_PYPTO_LOG=str(file))
    assert done.returncode != 0
    assert calls_in(file.read_text(encoding="utf-8")) == ["scale(x=float32[2], factor=0.0)"]


def test_calls_are_logged_to_standard_error(site: Site) -> None:
    install(site)
    done = site.start(CORE, "ops.scale(torch.ones(2))", CUSTOM_PYPTO_LOG="1")
    assert calls_in(done.stderr) == ["scale(x=float32[2])"]


def test_ops_that_were_loaded_later_are_logged(site: Site, tmp_path: Path) -> None:
    later = replace(site, folder=site.folder / "later")
    install(later)
    add = f"import sys; sys.path.append({str(later.folder)!r}); core.load_new(); core.load_new()"
    assert logged(site, tmp_path, add, "ops.scale(torch.ones(2))") == ["scale(x=float32[2])"]


def test_overloads_are_logged_without_names_of_arguments(site: Site, tmp_path: Path) -> None:
    site.install("acme", ops=["first", "first.other"], with_library=True)
    code = "ops.first(torch.ones(2)); ops.first.other(torch.ones(3))"
    assert logged(site, tmp_path, code) == ["first(float32[2])", "first.other(x=float32[3])"]


def test_the_log_is_invisible_to_modes_of_the_user(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    from torch.overrides import TorchFunctionMode
    seen = []
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))
    x = torch.ones(2)
    with Mode():
        ops.scale.default(x)
    assert not [each for each in seen if "get" in str(each)], seen
    """
    # The mode calls it again.
    assert logged(site, tmp_path, code) == ["scale(x=float32[2])"] * 2


def test_names_of_the_caller_cannot_act_on_a_terminal(site: Site, tmp_path: Path) -> None:
    install(site)
    code = r"""
    odd = type("\x1b[2J", (torch.Tensor,), {})
    ops.scale(torch.ones(2).as_subclass(odd))
    try: ops.scale(torch.ones(2), **{"\x1b[3J": 1})
    except RuntimeError: pass
    """
    # torch has the subclass's own call to pass on, so the first one is there twice.
    lines = logged(site, tmp_path, code)
    assert {*lines} == {r"scale(x=\x1b[2J float32[2])", r"scale(x=float32[2], \x1b[3J=1)"}


def test_a_long_call_is_cut(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    try: ops.scale(torch.ones(2), [7] * 100_000)
    except RuntimeError: pass
    """
    [line] = logged(site, tmp_path, code)
    assert "characters left out" in line
    assert len(line) < 5000


@pytest.mark.parametrize("value", ["", "0", None])
def test_without_the_variable_ops_are_what_torch_makes(site: Site, value: str | None) -> None:
    install(site)
    variables = {} if value is None else {"CUSTOM_PYPTO_LOG": value}
    code = """
    import sys
    kinds = [type(ops.scale), type(ops.scale.default)]
    assert kinds == [torch._ops.OpOverloadPacket, torch._ops.OpOverload], kinds
    give("custom_pypto.core.call_log" in sys.modules)
    """
    assert site.run(CORE, code, **variables) is False

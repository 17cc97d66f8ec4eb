"""CUSTOM_PYPTO_LOG: calls of ops are logged before they run."""

import re
from pathlib import Path

import pytest
from plugin_factory import Site

CORE = "import torch, custom_pypto.core as core; ops = torch.ops.custom_pypto"
SCHEMAS = [
    "scale(Tensor x, float factor=1.0, *, Tensor? bias=None) -> Tensor",
    "anywhere(Tensor x) -> Tensor",
    "twice(Tensor x) -> Tensor",
    "fill(Tensor(a!) x) -> ()",
    "many(Tensor[] x) -> Tensor",
]
KERNELS = """
import os, torch
from custom_pypto_plugin import Autograd, hookimpl

def scale(x, factor=1.0, *, bias=None):
    if factor == 0:
        os.abort()
    return x * factor

def fill(x): x.fill_(7.0)

@hookimpl
def custom_pypto_kernels():
    return {
        "scale": {"CPU": scale},
        "anywhere": {"CompositeImplicitAutograd": lambda x: torch.ops.custom_pypto.scale(x, 3.0)},
        "twice": {"CompositeExplicitAutograd": lambda x: torch.ops.custom_pypto.scale(x, 2.0)},
        "fill": {"CPU": fill},
        "many": {"CPU": lambda x: x[0] + 1},
    }

@hookimpl
def custom_pypto_fakes(): return {"scale": lambda x, factor=1.0, *, bias=None: torch.empty_like(x)}

@hookimpl
def custom_pypto_autograd():
    def keep(ctx, inputs, output, keyword_only_inputs): ctx.factor = inputs[1]
    def backward(ctx, grad): return torch.ops.custom_pypto.scale(grad, ctx.factor), None
    return {"scale": Autograd(backward, keep)}
"""


def install(site: Site) -> None:
    site.install("acme", KERNELS, ops=SCHEMAS, with_library=False)


def calls_in(text: str) -> list[str]:
    """The logged calls, each with process and thread removed."""
    return re.findall(r"^custom_pypto\[\d+\.\d+\] (.*)$", text, re.MULTILINE)


def logged(site: Site, folder: Path, *code: str) -> list[str]:
    """Run code that logs calls to a file; return them."""
    file = folder / "calls.log"
    # torch's compilers warn of their own parts.
    quiet = "import warnings; warnings.simplefilter('ignore')"
    site.run(quiet, CORE, *code, "give(0)", CUSTOM_PYPTO_LOG=str(file))
    return calls_in(file.read_text(encoding="utf-8"))


CALLS = {
    "shapes, dtypes and scalars": (
        "ops.scale(torch.ones(2, 3), 0.5, bias=torch.ones(4, dtype=torch.float16))",
        ["scale(x=float32[2, 3], factor=0.5, bias=float16[4])"],
    ),
    "an overload, without defaults": (
        "ops.scale.default(torch.ones(2), 1.0, bias=None)",
        ["scale(x=float32[2])"],
    ),
    "strides and a gradient": (
        "ops.scale(torch.ones(2, 3, requires_grad=True).t())",
        ["scale(x=float32[3, 2] with strides [1, 3])"],
    ),
    "a composite kernel, then in a mode": (
        """
        from torch.utils.flop_counter import FlopCounterMode
        ops.anywhere(torch.ones(2))
        with FlopCounterMode(display=False): ops.anywhere(torch.ones(2))
        """,
        ["scale(x=float32[2], factor=3.0)"] * 2,
    ),
    "a kernel that calls an op": (
        "ops.twice(torch.ones(2))",
        ["twice(x=float32[2])", "scale(x=float32[2], factor=2.0)"],
    ),
    # It calls ops from C++.
    "TorchScript": (
        """
        text = "def call(x):\\n  return torch.ops.custom_pypto.scale(x, 3.0)\\n"
        torch.jit.CompilationUnit(text).call(torch.ones(2))
        """,
        ["scale(x=float32[2], factor=3.0)"],
    ),
    "torch.compile": (
        """
        call = torch.compile(lambda x: ops.scale(x, 3.0), backend="aot_eager", fullgraph=True)
        for _ in range(2): call(torch.ones(2))
        """,
        ["scale(x=float32[2], factor=3.0)"] * 2,
    ),
}


@pytest.mark.parametrize(("code", "calls"), CALLS.values(), ids=CALLS)
def test_calls_are_logged(site: Site, tmp_path: Path, code: str, calls: list[str]) -> None:
    install(site)
    assert logged(site, tmp_path, code) == calls


def test_calls_that_are_watched_do_the_same(site: Site, tmp_path: Path) -> None:
    install(site)
    code = """
    import warnings
    warnings.simplefilter("ignore")
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    checks = "test_schema", "test_autograd_registration", "test_faketensor"
    torch.library.opcheck(ops.scale.default, (x, 2.0), test_utils=checks)
    torch.autograd.gradcheck(lambda x: ops.scale(x, 2.0), (x,))
    try: ops.scale(torch.ones(3).to_sparse())
    except RuntimeError as error: text = str(error)
    y = torch.ones(3)
    ops.fill(y)
    ops.anywhere(x).sum().backward()
    give([text, y.tolist(), y._version, {op.name: op.dispatch_keys for op in core.ops()}])
    """
    watched = site.run(CORE, code, CUSTOM_PYPTO_LOG=str(tmp_path / "calls.log"))
    assert watched == site.run(CORE, code)


def test_calls_are_logged_to_standard_error(site: Site) -> None:
    install(site)
    done = site.start(CORE, "ops.scale(torch.ones(2))", CUSTOM_PYPTO_LOG="1")
    assert calls_in(done.stderr) == ["scale(x=float32[2])"]


def test_calls_of_libraries_and_of_later_ops_are_logged(site: Site, tmp_path: Path) -> None:
    site.install("library", ops=["first", "first.other"])
    install(later := site.other("later"))
    code = f"""
    import sys
    ops.first(torch.ones(2)); ops.first.other(torch.ones(3))
    sys.path.append({str(later.folder)!r})
    core.load_new(); core.load_new()
    ops.scale(torch.ones(2))
    """
    expected = ["first(x=float32[2])", "first.other(x=float32[3])", "scale(x=float32[2])"]
    assert logged(site, tmp_path, code) == expected


def test_names_are_escaped_and_a_long_call_is_cut(site: Site, tmp_path: Path) -> None:
    install(site)
    code = r"""
    odd = type("\x1b[2J", (torch.Tensor,), {})
    ops.scale(torch.ones(2).as_subclass(odd))
    ops.many([torch.ones(2)] * 10_000)
    """
    odd, line = logged(site, tmp_path, code)
    assert odd == r"scale(x=\x1b[2J float32[2])"
    assert "characters left out" in line
    assert len(line) < 5000

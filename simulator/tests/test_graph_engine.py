"""The emulated graph engine under torchair: operators, order of nodes, and what it refuses.

tests/npu/test_graph.py has graphs of every op, also with symbolic sizes, and npugraph_ex.
"""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from script import PRELUDE, Run, write_kernels

# Ops that launch simulated aclnn kernels, defined in Python.
OPS = (
    PRELUDE
    + """
import torchair
from torchair import ge

library = torch.library.Library("simtest", "DEF")
library.define("add(Tensor self, Tensor other) -> Tensor")
library.define("bump(Tensor(a!) cache, Tensor amount) -> Tensor")

def add_npu(self, other):
    out = torch.empty_like(self)
    launch_tensors("aclnnTestAdd", self, other, out)
    return out

def bump_npu(cache, amount):
    total = torch.empty((), device=cache.device)
    launch_tensors("aclnnTestBump", cache, amount, total)
    return total

library.impl("add", add_npu, "PrivateUse1")
library.impl("bump", bump_npu, "PrivateUse1")
torch.library.register_fake("simtest::add", lambda self, other: torch.empty_like(self))
torch.library.register_fake("simtest::bump", lambda cache, amount: cache.new_empty(()))

@torchair.register_fx_node_ge_converter(torch.ops.simtest.add.default)
def convert_add(self, other, meta_outputs=None):
    return ge.custom_op(
        "TestAdd", inputs={"self": self, "other": other}, outputs=["out"], attrs={})

@torchair.register_fx_node_ge_converter(torch.ops.simtest.bump.default)
def convert_bump(cache, amount, meta_outputs=None):
    _, total = ge.custom_op("TestBump", inputs={"cache": cache, "amount": amount},
                            outputs=["cache", "total"], attrs={})
    return total

def backend():
    return torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())
"""
)


@pytest.fixture
def run(run: Run) -> Run:
    """Runs a script after `OPS`."""
    return partial(run, prelude=OPS)


def test_torchair_refuses_an_outdated_library_by_name(run: Run, outdated: Path) -> None:
    run(
        """
        compiled = torch.compile(torch.ops.simtest.add, backend=backend(), fullgraph=True)
        x = torch.randn(3, 4).npu()
        with raises("aclnnTestAdd: its library was built for another simulator: for torch"):
            compiled(x, x)
    """,
        ASCEND_CUSTOM_OPP_PATH=outdated,
    )


def test_a_mutated_input_that_grew_at_its_address_is_refused_as_ge_does(run: Run) -> None:
    run("""
        def function(cache, amount):
            return torch.ops.simtest.bump(cache, amount) + 1
        compiled = torch.compile(function, backend=backend(), fullgraph=True, dynamic=True)
        memory = torch.zeros(6, device="npu")
        compiled(memory[:4], torch.ones(4, device="npu"))
        compiled(memory[:3], torch.ones(3, device="npu"))
        compiled(torch.zeros(6, device="npu"), torch.ones(6, device="npu"))
        compiled(memory[:4], torch.ones(4, device="npu"))
        assert memory.cpu().tolist() == [3, 3, 3, 2, 0, 0]
        with raises("needs 24 bytes, 16 were given: torchair gives the size of"):
            compiled(memory, torch.ones(6, device="npu"))
    """)


def test_common_operators_agree_with_eager(run: Run) -> None:
    run("""
        def function(x, w):
            y = torch.relu(x @ w) - x.mean(-1, keepdim=True)
            z = torch.cat([y, y.softmax(-1)], dim=0).reshape(-1, 2).transpose(0, 1)
            return (z * z.sum(1, keepdim=True)).exp().rsqrt() + torch.maximum(z, z.neg())
        x, w = torch.randn(4, 6), torch.randn(6, 6)
        compiled = torch.compile(function, backend=backend(), fullgraph=True, dynamic=False)
        torch.testing.assert_close(compiled(x.npu(), w.npu()).cpu(), function(x, w))
    """)


def test_an_argument_in_a_private_format_is_seen_as_its_matrix(run: Run) -> None:
    run("""
        matrix = torch.arange(32 * 48).view(32, 48).to(torch.float16)
        tiles = matrix.view(2, 16, 3, 16).permute(2, 0, 1, 3).contiguous()
        private = torch_npu.empty_with_format(
            (32, 48), dtype=torch.float16, device="npu", acl_format=29)
        ctypes.memmove(private.untyped_storage().data_ptr(), tiles.data_ptr(), tiles.nbytes)
        compiled = torch.compile(torch.neg, backend=backend(), fullgraph=True, dynamic=False)
        assert compiled(private).cpu().equal(-matrix)
    """)


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_error_of_an_operator_that_is_not_emulated_names_it(run: Run, dynamic: bool) -> None:
    run(f"""
        compiled = torch.compile(torch.erfinv, backend=backend(), dynamic={dynamic})
        with raises("operator 'Erfinv' is not emulated, and no simulated kernel aclnnErfinv was"):
            compiled(torch.zeros(3, device="npu"))
    """)


def test_a_simulated_kernel_replaces_an_operator_of_the_engine(run: Run, tmp_path: Path) -> None:
    write_kernels(
        tmp_path,
        """
#include <custom_pypto_simulator/aclnn.h>
CUSTOM_PYPTO_SIM_ACLNN(aclnnNeg, at::Tensor x, at::Tensor& y) { y.fill_(x.numel()); }
""",
    )
    opp = build_kernels([tmp_path], tmp_path / "opp")["mine"]
    run(
        """
        compiled = torch.compile(torch.neg, backend=backend(), fullgraph=True, dynamic=False)
        assert compiled(torch.ones(3, device="npu")).cpu().tolist() == [3, 3, 3]
        assert torch.ones(3, device="npu").neg().cpu().tolist() == [3, 3, 3]
    """,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


# `simtest::add` made of other nodes; BODY returns the result.
CONVERTED = """
@torchair.register_fx_node_ge_converter(torch.ops.simtest.add.default)
def convert(self, other, meta_outputs=None):
    from torchair.ge import attr
BODY
compiled = torch.compile(torch.ops.simtest.add, backend=backend(), dynamic=False)
print(compiled(torch.arange(4.0).npu(), torch.ones(4).npu()).cpu().tolist())
"""


def convert_by(body: str) -> str:
    return CONVERTED.replace("BODY", textwrap.indent(textwrap.dedent(body), "    "))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (
            """"RmsNorm", inputs={"x": self, "gamma": other}, outputs=["y", "rstd"],
            attrs={"epsilon": attr.Float(0.5)}""",
            "[0.5, 0.5, 0.5, 0.5]",
        ),
        (
            """"LayerNormV4", outputs=["y", "mean", "rstd"], inputs={"x": self,
            "normalized_shape": ge.Const([4]), "gamma": other, "beta": other}""",
            str([0.8944236636161804] * 4),
        ),
        (
            """"Sort", inputs={"x": self}, outputs=["y1", "y2"],
            attrs={"descending": attr.Bool(True)}""",
            "[3.0, 2.0, 1.0, 0.0]",
        ),
    ],
    ids=["RmsNorm", "LayerNormV4", "Sort"],
)
def test_an_operator_has_its_further_outputs(run: Run, node: str, expected: str) -> None:
    body = f"""
        last = ge.custom_op({textwrap.dedent(node)})[-1]
        wide = ge.Cast(last, dst_type=0)
        return ge.custom_op("Mul", inputs={{"x1": wide, "x2": other}}, outputs=["y"])
    """
    run(convert_by(body), prints=expected)


def test_a_node_that_no_output_needs_does_not_run(run: Run) -> None:
    body = """
        ge.custom_op("TestThrow", inputs={"self": self}, outputs=["out"])
        return ge.custom_op("TestAdd", inputs={"self": self, "other": other}, outputs=["out"])
    """
    run(convert_by(body), prints="[1.0, 2.0, 3.0, 4.0]")


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("cache", "[0.0, 1.0, 2.0, 3.0]"),
        ("written", "[1.0, 2.0, 3.0, 4.0]"),
        ("ge.Clone(cache, dependencies=[written])", "[1.0, 2.0, 3.0, 4.0]"),
    ],
    ids=["no-edge", "data-edge", "control-edge"],
)
def test_a_node_runs_behind_another_only_where_an_edge_says_so(
    run: Run, read: str, expected: str
) -> None:
    body = f"""
        cache = ge.Clone(self)
        written, total = ge.custom_op(
            "TestBump", inputs={{"cache": cache, "amount": other}}, outputs=["cache", "total"])
        read = ge.Clone({read})
        # Nothing of the total is in the result, which needs the writing node all the same.
        return ge.custom_op("Sub", outputs=["y"], inputs={{
            "x1": ge.custom_op("Add", inputs={{"x1": read, "x2": total}}, outputs=["y"]),
            "x2": total}})
    """
    run(convert_by(body), prints=expected)


def test_a_copy_of_the_engine_is_not_written_to(run: Run) -> None:
    body = """
        cache = ge.Clone(self)
        before = ge.custom_op("Identity", inputs={"x": cache}, outputs=["y"])
        written, _ = ge.custom_op(
            "TestBump", outputs=["cache", "total"],
            inputs={"cache": cache, "amount": ge.Clone(other, dependencies=[before])})
        one, two = ge.custom_op("IdentityN", inputs={"x": [before, written]}, outputs=[("y", 2)])
        return ge.custom_op("Sub", inputs={"x1": two, "x2": one}, outputs=["y"])
    """
    run(convert_by(body), prints="[1.0, 1.0, 1.0, 1.0]")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            """"TestAdd", inputs={"self": self, "wrong": other}, outputs=["out"], attrs={}""",
            "TestAdd needs the input 'other'",
        ),
        (
            """"TestAdd", inputs={"self": self, "other": other}, outputs=["out"],
            attrs={"bogus": attr.Int(1)}""",
            "TestAdd was given the attribute 'bogus'",
        ),
        (
            """"TestScale", inputs={"self": self}, outputs=["out"], attrs={}""",
            "TestScale needs the attribute 'factor'",
        ),
        (
            """"TestScale", inputs={"self": self}, outputs=["out"],
            attrs={"factor": attr.Int(2)}""",
            "TestScale has an attribute 'factor' that is not a VT_FLOAT",
        ),
        (
            """"Neg", inputs={"x": self}, outputs=["y"], attrs={"bogus": attr.Bool(False)}""",
            "Neg was given the attribute 'bogus'",
        ),
        (
            """"SoftmaxV2", inputs={"x": self}, outputs=["y"],
            attrs={"axes": attr.ListInt([0, 0])}""",
            "SoftmaxV2 over several axes is not emulated",
        ),
        (
            """"GatherV2", outputs=["y"], attrs={"batch_dims": attr.Int(1)},
            inputs={"x": self, "indices": ge.Const([0, 1]), "axis": ge.Const(0)}""",
            "GatherV2 with the attribute 'batch_dims' = 1 is not emulated",
        ),
        (
            """"Exp", inputs={"x": self}, outputs=["y"], attrs={"base": attr.Float(2.0)}""",
            "Exp with the attribute 'base' = 2.0",
        ),
        (
            """"Pack", inputs={"x": [self, other]}, outputs=["y"], attrs={"N": attr.Int(3)}""",
            "Pack with the attribute 'N' = 3",
        ),
    ],
    ids=["input", "unknown", "missing", "type", "builtin", "axes", "batch", "base", "count"],
)
def test_what_a_node_gives_wrong_is_named(run: Run, node: str, message: str) -> None:
    run(convert_by(f"return ge.custom_op({textwrap.dedent(node)})"), fails=message)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (
            """"TestScale", inputs={"self": self}, outputs=["out"],
            attrs={"factor": attr.Float(3.0)}""",
            "[0.0, 3.0, 6.0, 9.0]",
        ),
        (
            """"GatherV2", outputs=["y"], attrs={"negative_index_support": attr.Bool(True)},
            inputs={"x": self, "indices": ge.Const([-1, 0, 1, -2]), "axis": ge.Const(-1)}""",
            "[3.0, 0.0, 1.0, 2.0]",
        ),
    ],
    ids=["kernel", "negative"],
)
def test_an_attribute_counts(run: Run, node: str, expected: str) -> None:
    run(convert_by(f"return ge.custom_op({textwrap.dedent(node)})"), prints=expected)


def test_a_torchair_without_a_name_that_is_used_is_refused_by_version(run: Run) -> None:
    run("""
        import torchair.ge._ge_graph
        del torchair.ge._ge_graph.torch_type_to_ge_type
        text = "reads the graphs of the torchair in torch_npu 2.13.0; this torchair is another: "
        with raises(text, "torch_type_to_ge_type", error=ImportError):
            import custom_pypto_simulator.graph_engine
    """)

"""The emulated graph engine under torchair: operators, order of nodes, and what it refuses.

tests/npu has graphs of every op, also with symbolic sizes, and npugraph_ex.
"""

import textwrap
from functools import partial

import pytest
from script import PRELUDE, Run

# Ops for graphs, defined in Python. The tests convert `add` as they need it.
OPS = (
    PRELUDE
    + """
import torchair
from torchair import ge

library = torch.library.Library("simtest", "DEF")
library.define("add(Tensor self, Tensor other) -> Tensor")
library.define("bump(Tensor(a!) cache, Tensor amount) -> Tensor")
torch.library.register_fake("simtest::add", lambda self, other: torch.empty_like(self))
torch.library.register_fake("simtest::bump", lambda cache, amount: cache.new_empty(()))

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
        with raises("given buffer size 16 is less than output tensor size 24"):
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


def test_the_error_of_an_operator_that_is_not_emulated_names_it(run: Run) -> None:
    run("""
        compiled = torch.compile(torch.erfinv, backend=backend(), dynamic=True)
        with raises("operator 'Erfinv' is not emulated, and no simulated kernel aclnnErfinv was"):
            compiled(torch.zeros(3, device="npu"))
    """)


def test_a_simulated_kernel_replaces_an_operator_of_the_engine(run: Run) -> None:
    run("""
        compiled = torch.compile(torch.tanh, backend=backend(), fullgraph=True, dynamic=False)
        assert compiled(torch.ones(3, device="npu")).cpu().tolist() == [3, 3, 3]
        assert torch.ones(3, device="npu").tanh().cpu().tolist() == [3, 3, 3]
    """)


# `simtest::add` of 0 to 3 and ones, made of other nodes; BODY returns the result.
CONVERTED = """
@torchair.register_fx_node_ge_converter(torch.ops.simtest.add.default)
def convert(self, other, meta_outputs=None):
    from torchair.ge import attr
    op = ge.custom_op
BODY
compiled = torch.compile(torch.ops.simtest.add, backend=backend(), dynamic=False)
print(compiled(torch.arange(4.0).npu(), torch.ones(4).npu()).cpu().tolist())
"""


def convert_by(body: str) -> str:
    return CONVERTED.replace("BODY", textwrap.indent(textwrap.dedent(body), "    "))


# Reads a cache that another node writes: only an edge says when.
READ = """
cache = ge.Clone(self)
written, total = op("TestBump", inputs={{"cache": cache, "amount": other}},
                    outputs=["cache", "total"])
# Nothing of the total is in the result, which needs the writing node all the same.
more = op("Add", inputs={{"x1": ge.Clone({}), "x2": total}}, outputs=["y"])
return op("Sub", inputs={{"x1": more, "x2": total}}, outputs=["y"])
"""
BUMPED = [1.0, 2.0, 3.0, 4.0]
# A body and its result.
RIGHT = {
    "a node that no output needs does not run": (
        """
        op("TestThrow", inputs={"self": self}, outputs=["out"])
        return op("TestAdd", inputs={"self": self, "other": other}, outputs=["out"])
        """,
        BUMPED,
    ),
    "no edge": (READ.format("cache"), [0.0, 1.0, 2.0, 3.0]),
    "data edge": (READ.format("written"), BUMPED),
    "control edge": (READ.format("cache, dependencies=[written]"), BUMPED),
    "a copy of the engine is not written to": (
        """
        cache = ge.Clone(self)
        before = op("Identity", inputs={"x": cache}, outputs=["y"])
        amount = ge.Clone(other, dependencies=[before])
        written, _ = op("TestBump", outputs=["cache", "total"],
                        inputs={"cache": cache, "amount": amount})
        one, two = op("IdentityN", inputs={"x": [before, written]}, outputs=[("y", 2)])
        return op("Sub", inputs={"x1": two, "x2": one}, outputs=["y"])
        """,
        [1.0] * 4,
    ),
    "an attribute of a kernel": (
        """
        return op("TestScale", inputs={"self": self}, outputs=["out"],
                  attrs={"factor": attr.Float(3.0)})
        """,
        [0.0, 3.0, 6.0, 9.0],
    ),
    "negative indices": (
        """
        return op("GatherV2", outputs=["y"], attrs={"negative_index_support": attr.Bool(True)},
                  inputs={"x": self, "indices": ge.Const([-1, 0, 1, -2]), "axis": ge.Const(-1)})
        """,
        [3.0, 0.0, 1.0, 2.0],
    ),
}


@pytest.mark.parametrize(("body", "expected"), RIGHT.values(), ids=RIGHT)
def test_nodes_run_by_their_edges_and_attributes(
    run: Run, body: str, expected: list[float]
) -> None:
    run(convert_by(body), prints=str(expected))


# What a node gives, and what is said of it.
WRONG = {
    '"TestAdd", inputs={"self": self, "wrong": other}, outputs=["out"], attrs={}': (
        "TestAdd needs the input 'other'"
    ),
    '"TestAdd", inputs={"self": self, "other": other}, outputs=["out"], attrs={"bogus":'
    " attr.Int(1)}": "TestAdd was given the attribute 'bogus'",
    '"TestScale", inputs={"self": self}, outputs=["out"], attrs={}': (
        "TestScale needs the attribute 'factor'"
    ),
    '"TestScale", inputs={"self": self}, outputs=["out"], attrs={"factor": attr.Int(2)}': (
        "TestScale has an attribute 'factor' that is not a VT_FLOAT"
    ),
    '"SoftmaxV2", inputs={"x": self}, outputs=["y"], attrs={"axes": attr.ListInt([0, 0])}': (
        "SoftmaxV2 over several axes is not emulated"
    ),
}


@pytest.mark.parametrize("node", WRONG)
def test_what_a_node_gives_wrong_is_named(run: Run, node: str) -> None:
    run(convert_by(f"return op({node})"), fails=WRONG[node])


# A change of torchair, and what is said of it.
CHANGED = {
    "del ge.torch_type_to_ge_type": "cannot import name 'torch_type_to_ge_type'",
    "ge.torch_type_to_ge_type = lambda dtype, device: 0": "missing a required argument: 'device'",
    "pb.ModelDef = pb.GraphDef": "AttributeError('graph')",
}


@pytest.mark.parametrize("change", CHANGED)
def test_graphs_of_a_changed_torchair_are_refused_and_calls_work(run: Run, change: str) -> None:
    run(f"""
        import torchair.ge._ge_graph as ge, torchair._ge_concrete_graph.ge_ir_pb2 as pb
        {change}
        text = "as the torchair in torch_npu 2.13 writes them; this torchair is another: "
        with raises(text, {CHANGED[change]!r}, error=ImportError):
            import custom_pypto_simulator.graph_engine
        assert (-torch.ones(3).npu()).cpu().tolist() == [-1, -1, -1]
    """)

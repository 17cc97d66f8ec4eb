"""The cost of a call by its contract, and torch's flop counter."""

import json
from typing import Any

import pytest
import torch
from custom_pypto.core.contracts import evaluate_cost
from custom_pypto_contract.contract import OpContract
from manifests import contract_of
from plugin_factory import Site
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

SCORES = contract_of("""
[scores]
schema = "scores(Tensor query, Tensor key, *, bool paged, int count) -> Tensor"
tensors.query = { shape = "*tokens D", dtype = "float32 float16" }
tensors.key.shape.paged = { true = "blocks size D", false = "S D" }
outputs.positions = { shape = "*tokens count", dtype = "int32" }
flops.paged.true = "2 * query.numel * blocks * size"
flops.paged.false = "2 * query.numel * min(S, count)"
bytes = "query.nbytes + key.numel * key.itemsize + positions.nbytes"
""")


def given(query: Any, key: Any, *, paged: bool, count: int = 5) -> dict[str, Any]:
    make = {"device": "meta", "dtype": torch.float16}
    return {
        "query": torch.empty(query, **make),
        "key": torch.empty(key, **make),
        "paged": paged,
        "count": count,
    }


def flops(op: OpContract, arguments: dict[str, Any]) -> int | None:
    return evaluate_cost(op, op.flops, arguments)


def test_cost_is_that_of_the_variant() -> None:
    assert flops(SCORES, given((2, 3, 8), (4, 16, 8), paged=True)) == 2 * (2 * 3 * 8) * 4 * 16
    assert flops(SCORES, given((3, 8), (4, 8), paged=False)) == 2 * (3 * 8) * 4
    assert flops(SCORES, given((3, 8), (9, 8), paged=False)) == 2 * (3 * 8) * 5


def test_cost_counts_the_bytes_of_outputs() -> None:
    arguments = given((2, 3, 8), (7, 8), paged=False)
    expected = 2 * (2 * 3 * 8) + 2 * (7 * 8) + 4 * (2 * 3 * 5)
    assert evaluate_cost(SCORES, SCORES.bytes, arguments) == expected


def test_cost_of_a_call_that_is_refused_or_does_not_fit_into_64_bits_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="scores: argument 'key'"):
        flops(SCORES, given((3, 8), (4, 9), paged=False))
    with pytest.raises(RuntimeError, match=r"scores: .* does not fit into 64 bits"):
        flops(SCORES, given((2**31, 1), (2**20, 2**20, 1), paged=True))


def test_cost_of_unknown_sizes_adds_no_guard() -> None:
    shapes = ShapeEnv()
    with FakeTensorMode(shape_env=shapes):
        query, key = (torch.empty(shapes.create_unbacked_symint(), 8) for _ in range(2))
        found = flops(SCORES, {"query": query, "key": key, "paged": False, "count": 5})
    assert str(found) == "16*u0*Min(5, u1)"


COUNT = """
import torch
with FlopCounterMode(display=False) as mode:
    for op in {ops}: getattr(torch.ops.custom_pypto, op)(torch.ones(2))
give({{op._qualified_op_name: count for op, count in mode.get_flop_counts()["Global"].items()}})
"""
COUNTER = "from torch.utils.flop_counter import FlopCounterMode"
CORE = "import custom_pypto.core as core"


def install(site: Site, name: str, *ops: str) -> None:
    """Install a plugin with ops of 7 flops each."""
    plugin = site.install(name, ops=ops)
    document = json.loads(plugin.manifest.read_text())
    plugin.forge(ops=[{**op, "flops": "7"} for op in document["ops"]])


@pytest.mark.parametrize("imports", [(CORE, COUNTER), (COUNTER, CORE)], ids=["after", "before"])
def test_flop_counter_counts_ops_of_any_time(site: Site, imports: tuple[str, str]) -> None:
    install(site, "acme", "first", "second")
    site.install("silent")
    install(later := site.other("later"), "more", "third")
    add = f"import sys; sys.path.append({str(later.folder)!r}); core.load_new()"
    found = site.run(*imports, add, COUNT.format(ops=["first", "second", "silent", "third"]))
    assert found == {f"custom_pypto::{op}": 7 for op in ("first", "second", "third")}


def test_flop_counter_keeps_a_user_s_formula_and_has_none_for_overloads(site: Site) -> None:
    install(site, "acme", "first", "second", "second.twice", "third")
    own = """
    import torch
    from torch.utils import flop_counter
    flop_counter.flop_registry[torch.ops.custom_pypto.third] = lambda *args, **kwargs: 1
    core.load_new()
    """
    found = site.run(COUNTER, CORE, own, COUNT.format(ops=["first", "second", "third"]))
    assert found == {"custom_pypto::first": 7, "custom_pypto::third": 1}

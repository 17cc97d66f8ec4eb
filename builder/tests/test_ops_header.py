"""ops.h: the C++ of a contract compiles, and does what its fake kernel does, word for word."""

# ruff: noqa: E501

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from cpp_library import HIDDEN, Library, compile_library
from custom_pypto.core.contracts import check_limits
from custom_pypto.core.contracts.evaluation import Evaluation
from custom_pypto.core.contracts.kernels import fake_kernel
from custom_pypto_build import ops_header
from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.ops_file import OpsFile
from custom_pypto_testing.sample_generator import draw
from custom_pypto_testing.violations import violations
from manifests import lazy_contract
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

REFUSED = Path(__file__).with_name("header_refused.txt")
ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / "contract" / "tests" / "contracts"
[EVERYTHING] = ops_file.read(CONTRACTS / "everything.toml").ops
RESERVED = ops_file.read(CONTRACTS / "reserved_names.toml").ops
[EDGES] = ops_file.read(CONTRACTS / "edges.toml").ops

ops = torch.ops.custom_pypto


def read(text: str) -> OpsFile:
    return ops_file.read_document(ops_file.tomllib.loads(text))


# The arguments of everything, to call what of it no kernel calls; and as many as an op can have.
_, _, arguments = EVERYTHING.schema.text.partition("(")
PROBES = f"""
[probe_npu]
schema = "probe_npu(str what, {arguments.rpartition(" ->")[0]} -> bool"

[many]
schema = "many({", ".join(f"Tensor(a{i}!) t{i}" for i in range(63))}, int last) -> ()"
"""


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("header")
    header = folder / "ops.h"
    header.write_text(
        ops_header.header_text(OpsFile((EVERYTHING, EDGES, *RESERVED, *read(PROBES).ops), {})),
        encoding="utf-8",
    )
    path = compile_library(CONTRACTS / "probe.cpp", folder / "probe.so", *HIDDEN, f"-I{folder}")
    library = Library(path)
    assert library.register() == (0, "")
    yield library
    library.unregister()


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call makes: its error's text, or of each result shape, dtype and strides."""
    try:
        made = call()
    except RuntimeError as error:
        return str(error)
    results = made if isinstance(made, tuple) else (made,)
    return [
        (tuple(each.shape), each.dtype, each.stride()) if isinstance(each, torch.Tensor) else each
        for each in results
    ]


def fake(given: dict[str, Any], op: OpContract = EVERYTHING) -> Any:
    made = fake_kernel(lazy_contract(op))
    return outcome(lambda: made(**given))


def kernel(given: dict[str, Any], op: OpContract = EVERYTHING) -> Any:
    packet, _, overload = op.name.partition(".")
    return outcome(lambda: getattr(getattr(ops, packet), overload or "default")(**given))


def drawn(seed: int) -> dict[str, Any]:
    return draw(EVERYTHING, Random(seed))


@pytest.mark.parametrize("seed", range(40))
def test_drawn_arguments_give_what_the_fake_gives(seed: int) -> None:
    given = drawn(seed)
    made = kernel(given)
    assert not isinstance(made, str)
    assert made == fake(given)


def test_each_rule_is_refused_in_the_words_of_the_fake() -> None:
    broken = list(violations(EVERYTHING, Random(1)))
    for each in broken:
        text = kernel(each.given)
        assert isinstance(text, str)
        assert text == fake(each.given)
        assert text.startswith(f"everything: argument '{each.argument}' ")
    # No call breaks a rule of bias alone, nor a rule of strides alone.
    assert len({each.rule for each in broken if each.rule.startswith("rule")}) >= 7


def base(**changes: Any) -> dict[str, Any]:
    """Return a small call, changed."""
    given = {
        "x": torch.ones(2, 4),
        "angles": torch.ones(2, 2),
        "weight": torch.ones(4, 8),
        "cache": torch.ones(1, 4, 1, 4),
        "table": torch.zeros(2, 1, dtype=torch.int32),
        "most": 3,
    }
    return {**given, **changes}


# What `violations` does not make: values, and what is None or empty.
CHANGED: dict[str, dict[str, Any]] = {
    "quotes": {"cache": torch.ones(1, 4, 1, 8)[..., ::2]},
    "unicode text": {"kind": "päged"},
    "float that is whole": {"scale": 2.0, "other": 1.0},
    "float that is small": {"scale": 1e-7, "other": 1e-9},
    "float that is large": {"scale": 12345678.0, "other": 0.0},
    "infinity": {"scale": float("inf"), "other": 0.0},
    "nan": {"scale": float("nan")},
    "negative number": {"k": -5},
    "floor of a negative number": {"k": 4},
    "floor of a larger number": {"k": 8},
    "None where a rule asks": {"most": None},
    "dtype that is no choice": {"out_dtype": torch.float64},
    "dtype of a tensor": {"out_dtype": torch.float32},
    "size 0 that divides": {"angles": torch.ones(2, 0)},
    "no tokens": {"x": torch.ones(0, 4), "angles": torch.ones(0, 2), "bias": torch.ones(0, 4)},
    "bias with another value": {"flag": True, "bias": torch.ones(2, 4)},
    "rule of an absent tensor": {"flag": True},
    "weight in tiles": {"weight": torch.ones(1, 4, 16)},
    "rank 0": {"x": torch.ones(())},
    "no table": {"table": None},
    "plain without table": {"kind": "plain", "table": None},
    "plain table of a 2-D x": {"kind": "plain", "table": torch.zeros(5, dtype=torch.int64)},
}


@pytest.mark.parametrize("case", CHANGED)
def test_changed_call_has_one_outcome(case: str) -> None:
    given = base(**CHANGED[case])
    assert kernel(given) == fake(given)


def test_unchanged_call_is_right() -> None:
    assert kernel(base()) == [
        ((2, 4), torch.float32, (4, 1)),
        ((2, 3, 8), torch.float32, (24, 8, 1)),
        ((6,), torch.float32, (1,)),
    ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("what", ["fast", "slow"])
def test_fits_is_what_the_contract_evaluates_to(seed: int, what: str) -> None:
    given = drawn(seed)
    evaluation = Evaluation(EVERYTHING, given, decide=bool)
    expected = bool(evaluation.run_checks().value(EVERYTHING.npu.supports[what]))
    assert ops.probe_npu(what, **given) is expected


@pytest.mark.parametrize("seed", range(20))
def test_limits_are_refused_in_the_words_of_the_converter(seed: int) -> None:
    given = drawn(seed)

    called = outcome(lambda: ops.probe_npu("limits", **given))
    limited = outcome(lambda: check_limits(EVERYTHING, "aclnnOther", given))
    assert limited == (called if isinstance(called, str) else [None])


def test_text_of_a_caller_is_escaped_as_in_the_fake() -> None:
    """Which characters, and where: core/tests/test_printable.py."""
    given = base(kind="a\0b\x1b[31m\n\u202ec")
    assert kernel(given) == fake(given)
    assert kernel(given).endswith(r", got 'a\x00b\x1b[31m\n\u202ec'")
    given = base(kind="\x1b" * 1_000_000)
    assert kernel(given) == fake(given)
    assert "characters left out" in kernel(given)


# A contract describes no text and no list as a result.
DESCRIBED = [op for op in RESERVED if op.outputs is not None]


@pytest.mark.parametrize("op", DESCRIBED, ids=lambda op: op.name)
def test_names_may_be_those_of_the_generated_code(op: OpContract) -> None:
    for seed in range(5):
        given = draw(op, Random(seed))
        made = kernel(given, op)
        assert not isinstance(made, str)
        assert made == fake(given, op)
        for violation in violations(op, Random(seed)):
            text = kernel(violation.given, op)
            assert isinstance(text, str)
            assert text == fake(violation.given, op)


def test_default_with_quotes_and_backslashes_is_what_the_schema_says() -> None:
    assert ops.ops(1) == 'a?b"??=\\'


def test_op_may_take_optional_tensors_alone() -> None:
    assert ops.optional() == []
    assert ops.optional(torch.ones(2)) == []
    with pytest.raises(RuntimeError, match=r"^optional: argument 'y' must"):
        ops.optional(torch.ones(2, 3), torch.ones(3, 4))
    with pytest.raises(RuntimeError, match=r"^optional: argument 'x' must be contiguous in its"):
        ops.optional(torch.ones(4)[::2])
    with pytest.raises(RuntimeError, match=r"^optional: argument 'y' must begin with the sizes"):
        ops.optional(torch.ones(3, 4), torch.ones(9, 9, 4))


def test_strides_of_sizes_that_no_input_has_are_guarded_by_nothing() -> None:
    [op] = read("""
[op]
schema = "op(Tensor x) -> Tensor"
tensors.x = { shape = "A B", strides = "contiguous" }
outputs.y = { like = "x" }
""").ops
    shapes = ShapeEnv()
    rows, columns = shapes.create_unbacked_symint(), shapes.create_unbacked_symint()
    with FakeTensorMode(shape_env=shapes):
        made = fake_kernel(lazy_contract(op))(torch.empty(rows, columns).t())
    assert made.dim() == 2


EDGE_CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "rule of no mask": ({"x": torch.ones(3, 2)}, None),
    "mask": ({"x": torch.ones(3, 2), "mask": torch.ones(8)}, None),
    "odd mask": ({"x": torch.ones(3, 2), "mask": torch.ones(7)}, "'mask' must have a multiple of 8, got 7"),
    "size of a dim of no mask": ({"x": torch.ones(3, 2), "other": torch.ones(5)}, None),
    "size of a dim of the mask": ({"x": torch.ones(3, 2), "mask": torch.ones(8), "other": torch.ones(5)}, "'other' must have size 16 in dimension 0 (S*2), got 5 in [5]"),
    "dtype of the mask": ({"x": torch.ones(3, 2), "mask": torch.ones(8), "other": torch.ones(16)}, None),
    "rule of another variant": ({"x": torch.ones(2), "layout": "B", "flag": True}, None),
    "rule of this variant": ({"x": torch.ones(4, 2)}, "'x' must have a multiple of 3 rows, got 4"),
    "variant without a shape": ({"x": torch.ones(1, 1, 1), "layout": "C"}, None),
    "comparison of a comparison": ({"x": torch.ones(3, 2), "flag": True}, "'flag' must say whether x is 1-D, got true"),
    "None where it is asked for": ({"x": torch.ones(3, 2), "k": 3}, "'k' must be None or more than 3, got 3"),
    "operand that is not needed": ({"x": torch.ones(3, 2), "m": -(2**62)}, None),
}  # fmt: skip

LEAST, MOST = -(2**63), 2**63 - 1
OVERFLOWS: dict[str, dict[str, Any]] = {
    f"{2**62} * 2": {"mask": torch.ones(1).expand(2**62), "other": torch.ones(0)},
    f"{LEAST} // -1": {"n": LEAST, "m": -1},
    f"{MOST} + 1": {"n": MOST},
    f"{LEAST} - 1": {"n": LEAST},
    f"{2**62} * 2 ": {"n": 2**62, "m": 2},
    f"0 - {LEAST}": {"n": LEAST, "m": 0},
    f"{2**62} * 3": {"m": 2**62},
}


@pytest.mark.parametrize("case", EDGE_CASES)
def test_what_a_call_does_not_have_breaks_no_rule(case: str) -> None:
    given, reason = EDGE_CASES[case]
    expect_edges(given, [None] if reason is None else f"edges: argument {reason}")


@pytest.mark.parametrize("operation", OVERFLOWS)
def test_number_that_does_not_fit_into_64_bits_is_refused(operation: str) -> None:
    given = {"x": torch.ones(3, 2), **OVERFLOWS[operation]}
    text = f"its arguments give {operation.strip()}, which does not fit into 64 bits"
    expect_edges(given, f"edges: {text}")


def expect_edges(given: dict[str, Any], expected: object) -> None:
    """Check that the kernel of edges and its fake end in the same way."""
    assert kernel(given, EDGES) == fake(given, EDGES) == expected


def test_group_lists_the_tensors_of_a_template() -> None:
    templates = "[templates.t]\nshape = '*dims'\n[templates.u]\nshape = '*dims'\n"
    tensors = "tensors = { x = { template = 't' }, y = { template = 't' }, z = {} }\n"
    one = f"{templates}[groups.g]\ncheck_order = 'x y'\n{tensors}"
    one += "[one]\nschema = 'one(Tensor x, Tensor y, Tensor? z) -> ()'\ninclude = 'g'\n"
    header = " ".join(ops_header.header_text(read(one + "tensors.z.template = 'u'")).split())
    assert 't_tensors(const Arguments& a) { return {{{"x", a.x}, {"y", a.y}}}; }' in header
    assert "u_tensors" not in header
    two = "[two]\nschema = 'two(Tensor x, Tensor y, Tensor? z) -> ()'\ninclude = 'g'\n"
    with pytest.raises(ContractError, match=r"'the template of y' is t in \[one\], u in \[two\]"):
        ops_header.header_text(
            read(f"{one}tensors.z.template = 'u'\n{two}tensors.y.template = 'u'")
        )


def test_op_may_write_to_as_many_arguments_as_a_schema_has() -> None:
    tensors = [torch.ones(1) for _ in range(63)]
    ops.many(*tensors, 1)
    assert [each._version for each in tensors] == [1] * 63


@pytest.mark.parametrize("paragraph", REFUSED.read_text(encoding="utf-8").split("\n\n")[1:])
def test_what_cannot_be_in_cpp_is_refused(paragraph: str) -> None:
    text, error = paragraph.rstrip("\n").split("\n! ")
    with pytest.raises(ContractError) as caught:
        ops_header.header_text(read(text))
    assert str(caught.value) == error


def test_the_header_of_the_page_is_what_the_build_generates() -> None:
    folder = ROOT / "plugins" / "add_custom"
    generated = ops_header.header_text(ops_file.read(folder / "ops.toml"))
    golden = (folder / "tests" / "ops.h.golden").read_text(encoding="utf-8")
    assert golden == generated, "after an install, copy build/custom-pypto/*/generated/ops.h"

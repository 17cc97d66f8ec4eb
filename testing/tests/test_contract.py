"""The conformance suite's checks of a contract: right ops pass, and each fault is found."""

# ruff: noqa: E501
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from custom_pypto.core.api import compile_definition
from custom_pypto.core.argument_memory import expect_memory
from custom_pypto.core.contracts.kernels import checked_kernel, fake_kernel
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto_contract import manifest
from custom_pypto_contract.contract import OpContract as Contract
from custom_pypto_contract.errors import ContractError
from custom_pypto_plugin import Reference, SampleInput, hookimpl
from custom_pypto_testing import checks, conformance
from custom_pypto_testing.checks import memory
from custom_pypto_testing.drawn_samples import drawn_calls, drawn_samples
from custom_pypto_testing.ops_under_test import Op
from custom_pypto_testing.sample_generator import draw
from custom_pypto_testing.violations import untested_rules, violations
from faulty_ops import TENSORS_OF_PLUS, registered
from manifests import contract_of, lazy_contract
from readme import code_of
from torch import Tensor

HOOKS_PAGE = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"

PLUS = f"""
[plus]
schema = "plus(Tensor x, Tensor y, int k=1) -> Tensor"
outputs.sum = {{ like = "x" }}
{TENSORS_OF_PLUS}
"""
WITHOUT_OUTPUTS = PLUS.replace('outputs.sum = { like = "x" }', "")
ADD_TO = f"""
[add_to]
schema = "add_to(Tensor(a!) x, Tensor y, int k=1) -> ()"
{TENSORS_OF_PLUS}
"""
CONTRACTS = {"outputs": PLUS, "no outputs": WITHOUT_OUTPUTS, "returns nothing": ADD_TO}


def fake_of(contract: Contract) -> Callable[..., Any]:
    return fake_kernel(lazy_contract(contract))


def reference_of_plus(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
    return x + y * k


def reference_of_add_to(x: Tensor, y: Tensor, k: int = 1) -> None:
    x += y * k


def refusing(text: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that first refuses what the contract refuses."""
    refuse = fake_of(contract_of(text))

    def refuse_or_run(x: Tensor, y: Tensor, k: int = 1) -> Any:
        refuse(x, y, k)
        return kernel(x, y, k)

    return refuse_or_run


plus, add_to = refusing(PLUS, reference_of_plus), refusing(ADD_TO, reference_of_add_to)


def check_refusals(op: Op, note: Callable[[str], None] | None = None) -> None:
    checks.check_refusals(op, note or pytest.fail)


@contextmanager
def op_of(text: str, kernel: Callable[..., Any] | None = None, fake: Any = None) -> Iterator[Op]:
    """The op that a contract is of; right, unless kernel or fake are given."""
    contract = contract_of(text)
    returns_nothing = contract.name == "add_to"
    reference = reference_of_add_to if returns_nothing else reference_of_plus
    with registered(
        contract.schema.text,
        kernel or (add_to if returns_nothing else plus),
        fake=fake or (fake_of(contract) if contract.outputs is not None else plus),
    ) as overload:
        yield Op(overload, reference=Reference(reference), contract=contract)


@pytest.mark.parametrize("text", CONTRACTS.values(), ids=CONTRACTS)
@pytest.mark.parametrize("check", [checks.check_drawn, check_refusals])
def test_right_op_passes(check: Callable[[Op], None], text: str) -> None:
    with op_of(text) as op:
        check(op)


@pytest.mark.parametrize("text", CONTRACTS.values(), ids=CONTRACTS)
def test_every_rule_is_broken_once_or_more(text: str) -> None:
    """Whatever the op returns."""
    found = {(each.argument, each.rule) for each in violations(contract_of(text), Random(0))}
    assert found == {
        ("k", "rule 0"),
        *(("x", rule) for rule in ("ndim", "dtype")),
        *(("y", rule) for rule in ("ndim", "dtype", "device", "size 0")),
    }


def add_once(x: Tensor, y: Tensor, k: int = 1) -> None:
    x.add_(y)


def return_nothing(x: Tensor, y: Tensor, k: int = 1) -> None:
    """Take every call."""


def refuse_z(x: Tensor, y: Tensor, k: int = 1) -> Any:
    raise RuntimeError("plus: argument 'z' is wrong")


def guarded_add_to(x: Tensor, y: Tensor, k: int = 1) -> None:
    for name, tensor in (("x", x), ("y", y)):
        expect_memory("add_to", name, tensor)


def writing_add_to(x: Tensor, y: Tensor, k: int = 1) -> None:
    if y.untyped_storage().nbytes() == 0:
        x.add_(1)
    guarded_add_to(x, y)


def check_memory(op: Op) -> None:
    given = {"x": torch.ones(3, 2), "y": torch.ones(2)}
    checks.check_memory(replace(op, samples=(SampleInput((), given),)))


def in_other_words(text: str) -> Callable[..., Any]:
    refuse = fake_of(contract_of(text))

    def fake(*args: Any) -> Any:
        try:
            return refuse(*args)
        except RuntimeError as error:
            raise RuntimeError(f"{error}, says the fake") from None

    return fake


TAKES, WORDS = "must refuse it .* but takes it", "the kernel says .* the fake .*, says the fake"
COSTS = {
    'flops = "M - 100 * k"': r"'flops' in ops\.toml is -\d+, and must be 0 or more",
    'flops.k = { 12345 = "M" }': r"'flops' in ops\.toml is None",
}
# What is wrong: the check, the message, the contract, the kernel and the fake if they are wrong.
FAULTS: dict[str, tuple[Any, ...]] = {
    "kernel that refuses nothing": (check_refusals, f"the kernel {TAKES}", PLUS, lambda x, y, k=1: x + 0),
    "refusal that names another argument": (check_refusals, "must refuse it and name .* but says .*'z'", PLUS, refuse_z),
    "fake that refuses nothing": (check_refusals, f"the fake {TAKES}", PLUS, None, lambda x, y, k=1: x + 0),
    "fake of a write that refuses nothing": (check_refusals, f"the fake {TAKES}", ADD_TO, None, return_nothing),
    "fake of no outputs that refuses nothing": (check_refusals, f"the fake {TAKES}", WITHOUT_OUTPUTS, None, lambda x, y, k=1: x + 0),
    "fake that refuses in other words": (check_refusals, WORDS, PLUS, None, in_other_words(PLUS)),
    "wrong value of a drawn call": (checks.check_drawn, r"plus, called with x=float\d\d\[.*, k=\d+: output: ", PLUS, lambda x, y, k=1: x + y),
    "wrong write of a drawn call": (checks.check_drawn, "add_to, called with .* argument 'x'", ADD_TO, add_once),
    "fake with another layout in a drawn call": (checks.check_drawn, "plus, called with .* shape", PLUS, None, lambda x, y, k=1: x.new_empty((*x.shape, 1))),
    **{f"cost that is no number: {cost}": (checks.check_drawn, found, f"{PLUS}{cost}") for cost, found in COSTS.items()},
    # Memory that an op cannot use.
    "no checks": (check_memory, "'x' without its storage: the fake must say .*, but takes the call", ADD_TO, add_to, return_nothing),
    "no check of writes": (check_memory, "the negative bit on 'x': the fake must say ", ADD_TO, guarded_add_to, guarded_add_to),
    "only the fake checks": (check_memory, "'x' without its storage: the kernel must say ", ADD_TO, return_nothing, guarded_add_to),
    "writes before it checks": (check_memory, "'y' without its storage: .* has written to 'x'", ADD_TO, writing_add_to, guarded_add_to),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(fault: str) -> None:
    check, message, *given = FAULTS[fault]
    with op_of(*given) as op, pytest.raises(AssertionError, match=message):
        check(op)


@pytest.mark.parametrize("argument", ["scale", "eps", "k"])
def test_each_special_float_breaks_a_rule_that_depends_on_another_scalar(argument: str) -> None:
    contract = contract_of(
        '[take]\nschema = "take(Tensor x, float scale, float? eps, int k) -> ()"\n'
        'tensors.x = { shape = "N" }\n'
        f'rules = [{{ argument = "{argument}", check = "k != 7 or (scale > 0 and eps >= 0)",'
        ' message = "is wrong" }]'
    )
    for seed in range(5):
        found = {
            (name, str(each.given[name]))
            for each in violations(contract, Random(seed))
            if each.rule == "rule 0"
            for name in ("scale", "eps")
        }
        wrong = {(name, value) for name in ("scale", "eps") for value in ("nan", "-inf", "-1.0")}
        assert found >= wrong | {("scale", "0.0")}


def test_none_a_list_and_a_negative_number_break_rules_or_satisfy_them() -> None:
    contract = contract_of(
        '[take]\nschema = "take(Tensor x, int? kind, int[]? sizes, int k=0) -> ()"\n'
        'tensors.x = { shape = "N" }\n'
        'scalars.kind = "in (-1, 0)"\n'
        "rules = [\n"
        '  { argument = "kind", check = "kind is not None", message = "is required" },\n'
        '  { argument = "sizes", check = "sizes is None", message = "must be None" },\n'
        '  { argument = "k", when = "kind == -1", check = "k <= 1", message = "is too large" },\n'
        "]"
    )
    found = [*violations(contract, Random(0))]
    assert {each.argument for each in found} == {"kind", "sizes", "k", "x"}
    assert [each.given["sizes"] for each in found if each.argument == "sizes"] == [[]]
    assert None in [each.given["kind"] for each in found if each.argument == "kind"]
    assert not [*untested_rules(contract, {each.rule for each in found})]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("shape '[7]' is invalid"), "plus: shape '[7]' is invalid"),
        (RuntimeError("plus: is odd"), "plus: is odd"),
        (RuntimeError("plus: \x1b[2J\nb"), r"plus: \x1b[2J\nb"),
        (RuntimeError("a" * 9994), f"plus: {'a' * 1994} [6000 characters left out] {'a' * 2000}"),
        (torch.OutOfMemoryError("device 0"), "device 0"),
    ],
    ids=["of torch", "of the kernel", "not printable", "long", "of a type of its own"],
)
def test_error_of_a_python_kernel_names_the_op_and_is_printable(
    error: RuntimeError, text: str
) -> None:
    def kernel(x: Tensor, y: Tensor, k: int = 1) -> Tensor:
        raise error

    lazy = lazy_contract(contract_of(PLUS))
    with pytest.raises(type(error)) as caught:
        checked_kernel(lazy, kernel)(torch.ones(2, 3), torch.ones(3))
    assert str(caught.value) == text


@pytest.mark.parametrize("output", ['shape = "N k", dtype = "=x"', 'like = "x"'])
def test_fake_names_the_output_that_no_memory_holds(output: str) -> None:
    contract = contract_of(
        '[widen]\nschema = "widen(Tensor x, int k) -> Tensor"\ntensors.x = { shape = "N" }\n'
        f"outputs.wide = {{ {output} }}"
    )
    x = torch.ones(1, dtype=torch.int64).expand(2**62)
    with pytest.raises(RuntimeError, match=r"^widen: cannot allocate the output 'wide' \[461.*: S"):
        fake_of(contract)(x, 2)


def test_python_kernel_of_the_page_on_hooks_passes() -> None:
    page = HOOKS_PAGE.read_text(encoding="utf-8")
    section = page.partition("\n## `custom_pypto_kernels`\n")[2].partition("\n## ")[0]
    [contract], [code] = code_of(section, "toml"), code_of(section, "python")
    module: dict[str, Any] = {"hookimpl": hookimpl}
    exec(code, module)
    [kernel] = module["custom_pypto_kernels"]()["scale"].values()
    lazy = lazy_contract(contract_of(contract))
    definition = compile_definition(lazy.op)
    assert definition is not None
    kernel = checked_kernel(lazy, kernel)
    with registered(lazy.op.schema.text, kernel, fake=fake_kernel(lazy)) as overload:
        op = Op(overload, reference=Reference(definition), contract=lazy.op)
        assert op.cases
        checks.check_drawn(op)
        check_refusals(op)
        for case in op.cases:
            checks.check_strides(case)
            checks.check_aliasing(case)
            checks.check_symbolic_fake(case)


def test_tensors_are_drawn_with_the_dims_that_the_rules_demand() -> None:
    contract = contract_of(
        """
[first]
schema = "first(Tensor x, Tensor y) -> Tensor"
tensors = { x = { shape = "*dims" }, y = {} }
rules = [
  { argument = "x", check = "x.ndim >= 5", message = "must be 5-D or more" },
  { argument = "y", check = "y.ndim == 4", message = "must be 4-D" },
]
outputs.z = { shape = "x.shape[0] y.shape[-1]", dtype = "=x" }
"""
    )
    for seed in range(5):
        given = draw(contract, Random(seed))
        assert (given["x"].ndim, given["y"].ndim) == (5, 4)


@pytest.mark.parametrize("values", [("a", "b"), (*"abcdef",), (1, 256), (True, False)])
def test_samples_and_random_calls_have_each_choice(values: tuple[Any, ...]) -> None:
    kind, rule = f"{type(values[0]).__name__} k", f'scalars.k = "in {values}"'
    contract = contract_of(PLUS.replace("int k=1", kind).replace(RULE, rule))
    samples = (each.args[2] if each.args else each.kwargs["k"] for each in drawn_samples(contract))
    for found in (samples, (each["k"] for each in drawn_calls(contract))):
        assert {*values} <= {*found}


def test_contract_that_is_nested_too_deeply_cannot_be_read() -> None:
    shape: Any = "N"
    for _ in range(2000):
        shape = {"by": "x.ndim", "of": [[1, shape]]}
    data = contract_of('[op]\nschema = "op(Tensor x) -> ()"\ntensors.x = {}').data
    tensors = [{**data["tensors"][0], "shape": shape}]
    lazy = LazyContract(manifest.make_op({**data, "tensors": tensors}))
    with pytest.raises(ContractError, match=r"^op: its contract .* cannot be read: Recursion"):
        _ = lazy.op


def test_a_written_argument_is_laid_over_the_others() -> None:
    with op_of(ADD_TO) as op:
        faults = [fault for fault, *_ in memory._faults(op.cases[0])]
    assert "'x' over a part of 'y'" in faults


RULE = 'rules = [{ argument = "k", check = "k >= 1" }]'


def with_rules(*rules: str) -> str:
    """`PLUS` with these rules, each of argument k."""
    made = (f'{{ argument = "k", {each}, message = "must fit" }}' for each in rules)
    return PLUS.replace(RULE, f"rules = [{', '.join(made)}]")


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (['check = "N > 3 and N < 2"'], "none satisfies the rule 'N > 3 .*: perhaps no call can"),
        (['check = "N > 4"', 'check = "N < 4"'], "most break the rule .* perhaps no call can"),
    ],
)
def test_rules_that_no_call_satisfies_are_named(rules: list[str], named: str) -> None:
    with op_of(with_rules(*rules)) as op:
        [(test, error)] = conformance._cases(op, "case")
        with pytest.raises(type(error), match=named):
            checks.check_drawn(op)
    assert test == "plus-no-sample"


@pytest.mark.parametrize(
    ("rule", "note"),
    [
        (
            'check = "N == 3", when = "k > 776"',
            "no drawn call satisfies the rule 'N == 3' of 'k' when 'k > 776'",
        ),
        ('check = "k >= 0"', "no drawn call breaks only the rule 'k >= 0' of 'k'"),
    ],
)
def test_rule_that_no_drawn_call_tests_is_noted(rule: str, note: str) -> None:
    text = with_rules('check = "k >= 1"', rule)
    notes: list[str] = []
    with op_of(text, refusing(text, reference_of_plus)) as op:
        check_refusals(op, notes.append)
    assert notes == [note]


@pytest.mark.parametrize("unchecked", ["nothing", "first", "order", "most"])
@pytest.mark.parametrize("first", ["0 .. ", ""])
def test_prefix_sums_are_drawn_and_a_kernel_must_refuse_wrong_ones(
    first: str, unchecked: str
) -> None:
    more = 1 if first else 0
    text = f"""
[lengths]
schema = "lengths(Tensor x, Tensor ends) -> Tensor"
tensors.x = {{ shape = "T", dtype = "float32" }}
tensors.ends = {{ shape = "{"B+1" if first else "B"}", dtype = "int64", values = "prefix_sums {first}T" }}
outputs.lengths = {{ shape = "B", dtype = "int64" }}
"""
    refuse = fake_of(contract_of(text))

    def definition(x: Tensor, ends: Tensor) -> Tensor:
        return ends.diff(prepend=ends.new_zeros(1 - more))

    def kernel(x: Tensor, ends: Tensor) -> Tensor:
        refuse(x, ends)
        wrong = {
            "first": bool((ends[:1] != 0).any() if first else (ends[:1] < 0).any()),
            "order": bool((ends.diff() < 0).any()),
            "most": bool((ends[-1:] > len(x)).any()),
        }
        for name, is_wrong in wrong.items():
            if is_wrong and name != unchecked:
                raise RuntimeError(f"lengths: argument 'ends' has a wrong {name}")
        return definition(x, ends)

    with registered(contract_of(text).schema.text, kernel, fake=fake_of(contract_of(text))) as made:
        op = Op(made, reference=Reference(definition), contract=contract_of(text))
        checks.check_drawn(op)
        found = pytest.raises(AssertionError, match=r"values of argument 'ends' broken.*takes it")
        with nullcontext() if unchecked == "nothing" else found:
            check_refusals(op)

"""Schemas: what is read of them, and what is refused."""

from __future__ import annotations

import pytest
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.schema import Argument, parse_schema


def shown(text: str) -> str:
    """Return a schema as this module reads it, in one line."""
    schema = parse_schema(text)
    parts = [schema.name]
    for each in schema.arguments:
        marks = "!" * each.is_mutable + "*" * each.is_keyword_only
        parts.append(f"{each.type} {each.name}{marks}={each.default}")
    return " | ".join(
        [*parts, *(f"-> {each.type} {each.name}".rstrip() for each in schema.returns)]
    )


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("f() -> ()", "f"),
        ("f.out(Tensor x) -> Tensor", "f.out | Tensor x=None | -> Tensor"),
        ("f(Tensor(a!)? x=None) -> ()", "f | Tensor? x!=None"),
        ("f(Tensor(a!)[] x) -> ()", "f | Tensor[] x!=None"),
        ("f(Tensor(a! -> *) x) -> ()", "f | Tensor x!=None"),
        ("f(int[2] x=[1, 2], *, int[]? y) -> ()", "f | int[] x=[1, 2] | int[]? y*=None"),
        ("f(SymInt n, SymInt[3] m) -> ()", "f | int n=None | int[] m=None"),
        (r"f(str s=',)\'', float e=1e-5) -> ()", r"f | str s=',)\'' | float e=1e-5"),
        ("f(str s=') -> x') -> int", "f | str s=') -> x' | -> int"),
        ("f(Tensor x) -> (Tensor y, Tensor?)", "f | Tensor x=None | -> Tensor y | -> Tensor?"),
        (
            "  f(\n Tensor x ,Tensor?[] y )-> Tensor[] ",
            "f | Tensor x=None | Tensor?[] y=None | -> Tensor[]",
        ),
    ],
)
def test_schema_is_read(text: str, read: str) -> None:
    assert shown(text) == read


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must have the form 'name(arguments) -> returns'"),
        ("f", "must have the form"),
        ("f(Tensor x)", "must have the form"),
        ("f -> Tensor", "must have the form"),
        ("1f() -> ()", "must have the form"),
        ("custom_pypto::f(Tensor x) -> ()", "leave the namespace out"),
        ("name() -> ()", "an op cannot be called 'name'"),
        ("f(Tensor) -> ()", "'Tensor' is no argument; write 'type name'"),
        ("f(Tensor é) -> ()", "'Tensor é' is no argument"),
        ("f(int from) -> ()", "cannot be called 'from', which is a keyword of Python"),
        ("f(int a, int a) -> ()", "two arguments are called 'a'"),
        ("f(Tensr x) -> ()", "'Tensr' cannot cross torch's stable ABI; use Tensor"),
        ("f(Tensr x) -> ()", "did you mean 'Tensor'?"),
        ("f(Scalar k) -> ()", "'Scalar' cannot cross torch's stable ABI"),
        (
            "f(Tensor x=None) -> ()",
            "a Tensor with a default, which can only be None; write `Tensor? x=None`",
        ),
        ("f(Tensor(a!) x) -> Tensor(a!)", "return `()` and let the caller use the argument"),
        ("f(Tensor x) -> Tensor, Tensor", "write several returns in parentheses"),
        ("f(int k='text') -> ()", "the default of `k` is 'text', which is no int"),
        ("f(int k=abc) -> ()", "the default of `k` is abc, which is no int"),
        ("f(int k=True) -> ()", "the default of `k` is True, which is no int"),
        ("f(int k=9223372036854775808) -> ()", "9223372036854775808, which does not fit into 64"),
        ("f(float k=1e999) -> ()", "the default of `k` is 1e999, which does not fit into 64 bits"),
        ("f(int[] k=[1, 99999999999999999999]) -> ()", "which does not fit into 64 bits"),
        ("f(float k=inf) -> ()", "the default of `k` is inf, which is no float"),
        ("f(int[] k=[1, 'a']) -> ()", "which is no int[]"),
        ("f(Tensor[] k=[]) -> ()", "which is no Tensor[]"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ContractError) as caught:
        parse_schema(text)
    assert reason in str(caught.value)


def test_op_takes_at_most_64_arguments() -> None:
    names = [f"int k{i}" for i in range(65)]
    assert len(parse_schema(f"f({', '.join(names[:64])}) -> ()").arguments) == 64
    with pytest.raises(ContractError, match="at most 64 arguments"):
        parse_schema(f"f({', '.join(names)}) -> ()")


def test_optional_tensor_is_a_tensor_and_optional() -> None:
    argument = Argument("x", "Tensor?", is_mutable=False, is_keyword_only=False, default=None)
    assert argument.is_tensor
    assert argument.is_optional

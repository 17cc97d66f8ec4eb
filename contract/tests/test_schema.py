"""Schemas: what is read of them, and what is refused."""

from pathlib import Path

import pytest
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.schema import parse_schema

SCHEMAS = Path(__file__).with_name("contracts") / "schemas.txt"


def shown(text: str) -> str:
    """Return a schema as this module reads it, in one line."""
    schema = parse_schema(text)
    parts = [schema.name]
    for each in schema.arguments:
        marks = ("!" if each.is_mutable else "") + ("*" if each.is_keyword_only else "")
        parts.append(f"{each.type} {each.name}{marks}={each.default}")
    return " | ".join(
        [*parts, *(f"-> {each.type} {each.name}".rstrip() for each in schema.returns)]
    )


PARAGRAPHS = SCHEMAS.read_text(encoding="utf-8").split("\n\n")[1:]


@pytest.mark.parametrize("paragraph", PARAGRAPHS)
def test_schema_is_read_or_refused_with_the_reason(paragraph: str) -> None:
    *lines, expected = paragraph.rstrip("\n").split("\n")
    try:
        found = f"= {shown(chr(10).join(lines))}"
    except ContractError as error:
        found = f"! {error}"
    assert found == expected


def test_op_takes_at_most_64_arguments() -> None:
    names = [f"int k{i}" for i in range(65)]
    assert len(parse_schema(f"f({', '.join(names[:64])}) -> ()").arguments) == 64
    with pytest.raises(ContractError, match="at most 64 arguments"):
        parse_schema(f"f({', '.join(names)}) -> ()")

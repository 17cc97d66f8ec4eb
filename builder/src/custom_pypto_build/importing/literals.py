"""Reads a default of C++ as a schema writes it: a literal, or a name that stands for a number."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping

from custom_pypto_contract import cpp_text

_NUMBER = re.compile(r"(?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?)[fFlLuU]{0,3}")
_LIMIT = re.compile(
    r"(?P<kind>U?INT(?:8|16|32|64)?|U?L?LONG|SIZE|FLT|DBL)_(?P<which>MAX|MIN|EPSILON)"
)
_LIMIT_OF_TYPE = re.compile(
    r"(?:std::)?numeric_limits<(?:std::)?(?P<type>\w{1,20})>::(?P<which>max|min|lowest|epsilon)\(\)"
)
_KINDS = {"float": "FLT", "double": "DBL", "int": "INT", "long": "LONG", "size_t": "SIZE"}
_BITS = {"": 32, "8": 8, "16": 16, "32": 32, "64": 64}
_DTYPE = re.compile(r"(?:ge::)?(?:DataType::)?DT_(?P<name>\w{1,20})")
_NUMBERED = (
    "FLOAT 0 FLOAT16 1 INT8 2 INT32 3 UINT8 4 INT16 6 UINT16 7 UINT32 8 INT64 9 UINT64 10"
    " DOUBLE 11 BOOL 12 COMPLEX64 16 COMPLEX128 17 BF16 27 UNDEFINED 28 INT4 29 INT2 31"
    " COMPLEX32 33 HIFLOAT8 34 FLOAT8_E5M2 35 FLOAT8_E4M3FN 36 FLOAT8_E8M0 37 FLOAT4_E2M1 40"
)
_DTYPES = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", _NUMBERED)}
"""The numbers of GE's DataType, which are those of aclDataType; both are binary interfaces."""


def read(text: str, constants: Mapping[str, str]) -> str | None:
    """Return a default as a schema writes it; None if no schema can have it.

    `constants` are the literals that the file gives a name.
    """
    text = text.strip()
    text = constants.get(text, text)
    if text.startswith("{") and cpp_text.Brackets(text).end_of(0) == len(text):
        parts = [_read_scalar(each, constants) for each in cpp_text.split(text[1:-1])]
        known = [each for each in parts if each is not None]
        return f"[{', '.join(known)}]" if len(known) == len(parts) else None
    return _read_scalar(text, constants)


def _read_scalar(text: str, constants: Mapping[str, str]) -> str | None:
    text = constants.get(text, text)
    if text in ("true", "false"):
        return text.capitalize()
    number = _NUMBER.fullmatch(text)
    if number is not None:
        return number["number"].lstrip("+")
    if re.fullmatch(r'"[^"\\]*"', text):
        return ast.unparse(ast.Constant(text[1:-1]))
    value = _named_number(text.lstrip("-").strip())
    if value is None or text.startswith("--"):
        return None
    value = -value if text.startswith("-") else value
    # A schema has integers of 64 bits.
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else repr(value)


def _named_number(text: str) -> int | float | None:
    dtype = _DTYPE.fullmatch(text)
    if dtype is not None:
        return _DTYPES.get(dtype["name"])
    limit = _LIMIT.fullmatch(text)
    if limit is not None:
        return _limit(limit["kind"], limit["which"])
    limit = _LIMIT_OF_TYPE.fullmatch("".join(text.split()))
    if limit is None:
        return None
    kind = _KINDS.get(limit["type"], limit["type"].removesuffix("_t").upper())
    which = limit["which"].upper()
    return _limit(kind, which) if _LIMIT.fullmatch(f"{kind}_MAX") else None


def _limit(kind: str, which: str) -> int | float | None:
    if kind in ("FLT", "DBL"):
        digits, exponent = (24, 128) if kind == "FLT" else (53, 1024)
        largest = math.ldexp(2 - math.ldexp(1, 1 - digits), exponent - 1)
        of = {"MAX": largest, "LOWEST": -largest, "MIN": math.ldexp(1, 2 - exponent)}
        return of.get(which, math.ldexp(1, 1 - digits))
    is_signed = kind.startswith(("I", "L"))
    bits = _BITS[kind.partition("INT")[2]] if "INT" in kind else 64
    values = bits - is_signed
    if which == "MAX":
        return (1 << values) - 1
    return -(1 << values) if is_signed and which != "EPSILON" else 0

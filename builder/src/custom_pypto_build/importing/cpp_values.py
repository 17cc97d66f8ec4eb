"""Reads values in C++: defaults of operators; sizes, dtypes and arguments in op-plugin's yaml.

Each function returns None for text that it does not understand, or that ops.toml cannot say.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import count
from typing import TypeAlias

from custom_pypto_contract import cpp_text
from custom_pypto_contract.dtypes import DTYPES

_EXPRESSION = re.compile(r"[\w.:<>()+-]{1,100}", re.ASCII)
_LITERAL = re.compile(
    r"(?<![\w.])(?:(?P<int>0|[1-9]\d*|0[xX][\da-fA-F]+)(?P<suffix>[uU]?(?:ll?|LL?)?|(?:ll?|LL?)[uU])"
    r"|(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)[fFlL]?)(?![\w.])"
)
_LIMIT_OF_TYPE = re.compile(
    r"\bnumeric_limits<(?P<type>\w+)>::(?P<which>max|min|lowest|epsilon)\(\)"
)
_BITS = {"INT": 31, "LONG": 63, "LLONG": 63, **{f"INT{bits}": bits - 1 for bits in (8, 16, 32, 64)}}
_FLT_MAX, _DBL = (2 - 2.0**-23) * 2.0**127, sys.float_info
_LIMITS: dict[str, tuple[int | float, ...]] = {
    **{kind: ((1 << bits) - 1, -1 << bits, -1 << bits, 0) for kind, bits in _BITS.items()},
    **{f"U{kind}": ((2 << bits) - 1, 0, 0, 0) for kind, bits in _BITS.items()},
    "SIZE": ((1 << 64) - 1, 0, 0, 0),
    "FLT": (_FLT_MAX, 2.0**-126, -_FLT_MAX, 2.0**-23),
    "DBL": (_DBL.max, _DBL.min, -_DBL.max, _DBL.epsilon),
}
"""The values of MAX, MIN, LOWEST and EPSILON of each type."""
_DTYPES = {
    "FLOAT": 0,
    "FLOAT16": 1,
    "INT8": 2,
    "INT32": 3,
    "UINT8": 4,
    "INT16": 6,
    "UINT16": 7,
    "UINT32": 8,
    "INT64": 9,
    "UINT64": 10,
    "DOUBLE": 11,
    "BOOL": 12,
    "COMPLEX64": 16,
    "COMPLEX128": 17,
    "BF16": 27,
    "UNDEFINED": 28,
    "INT4": 29,
    "INT2": 31,
    "COMPLEX32": 33,
    "HIFLOAT8": 34,
    "FLOAT8_E5M2": 35,
    "FLOAT8_E4M3FN": 36,
    "FLOAT8_E8M0": 37,
    "FLOAT4_E2M1": 40,
}
"""The numbers of GE's DataType. aclDataType has the same; both are binary interfaces."""
_INT_MAX = (1 << 31) - 1
_UNSIGNED = ((1 << 32) - 1, (1 << 64) - 1)
_Typed: TypeAlias = tuple[int | float, int | float]
_NAMES: dict[str, _Typed] = {
    **{f"DT_{name}": (number, _INT_MAX) for name, number in _DTYPES.items()},
    **{
        # C++ computes narrower types as int.
        f"{kind}_{which}": (value, max(values[0], _INT_MAX))
        for kind, values in _LIMITS.items()
        for which, value in zip(("MAX", "MIN", "LOWEST", "EPSILON"), values, strict=True)
    },
}
"""Values by name, each with the largest value of its type in C++."""


def read_default(text: str, constants: Mapping[str, str]) -> str | None:
    """Return a default as a schema writes it; None if no schema can have it.

    `constants` are the literals that the file gives a name.
    """
    text = text.strip()
    text = constants.get(text, text)
    if text.startswith("{") and cpp_text.bracket_ends(text)[0] == len(text):
        parts = [_read_scalar(each, constants) for each in cpp_text.split(text[1:-1])]
        known = [each for each in parts if each is not None]
        return f"[{', '.join(known)}]" if len(known) == len(parts) else None
    return _read_scalar(text, constants)


def _read_scalar(text: str, constants: Mapping[str, str]) -> str | None:
    text = constants.get(text, text)
    if text in ("true", "false"):
        return text.capitalize()
    if re.fullmatch(r'"[^"\\]*"', text):
        return ast.unparse(ast.Constant(text[1:-1]))
    # Spaces stand anywhere but between two words.
    return _read_number(re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", text))


@lru_cache(1024)
def _read_number(text: str) -> str | None:
    """Read literals, limits of types and dtypes, and of these ``-``, ``<<`` and brackets."""
    if _EXPRESSION.fullmatch(text) is None:
        return None
    text = _LIMIT_OF_TYPE.sub(_limit_of_type, re.sub(r"\b(?:std|ge|DataType)::", "", text))
    literals = [_literal(each) for each in _LITERAL.finditer(text)]
    # Python's parser gets the index of each literal, in brackets that the text itself has not.
    indices = count()
    text = _LITERAL.sub(lambda _: f"[{next(indices)}]", text.removeprefix("+"))
    if "--" in text or "++" in text:
        return None
    try:
        result = _value(ast.parse(text, mode="eval").body, literals)
    except SyntaxError:
        return None
    # A schema has integers of 64 bits.
    if result is None or (isinstance(result[0], int) and result[0] >= 2**63):
        return None
    return repr(result[0])


def _limit_of_type(limit: re.Match[str]) -> str:
    type_ = limit["type"].removesuffix("_t").upper()
    kind = {"FLOAT": "FLT", "DOUBLE": "DBL"}.get(type_, type_)
    return f"{kind}_{limit['which'].upper()}"


def _literal(literal: re.Match[str]) -> _Typed | None:
    """Return a value, and the largest value of its type in C++."""
    if literal["float"] is not None:
        value = float(literal["float"])
        return (value, _DBL.max) if value <= _DBL.max else None
    number, suffix = int(literal["int"], 0), literal["suffix"].lower()
    # A decimal number without a suffix has no unsigned type.
    signed, unsigned = "u" not in suffix, "u" in suffix or literal["int"][1:2] in ("x", "X")
    for bits in (31, 32, 63, 64):
        has_type = (unsigned if bits % 32 == 0 else signed) and (bits > 32 or "l" not in suffix)
        if has_type and number < 1 << bits:
            return number, (1 << bits) - 1
    return None


def _value(expression: ast.expr, literals: Sequence[_Typed | None]) -> _Typed | None:
    """Return a value, and the largest value of its type; None also where the type overflows."""
    match expression:
        case ast.List([ast.Constant(int(index))]):
            return literals[index]
        case ast.Name(name):
            return _NAMES.get(name)
        case ast.UnaryOp(ast.USub(), operand):
            number, largest = _value(operand, literals) or (0, 0)
            if largest and largest not in _UNSIGNED and -number <= largest:
                return -number, largest
        case ast.BinOp(left, ast.LShift(), right):
            number, largest = _value(left, literals) or (0, 0)
            bits, _ = _value(right, literals) or (0, 0)
            if isinstance(number, int) and isinstance(bits, int) and 0 <= bits < 64:
                fits = largest and -largest - 1 <= number << bits <= largest
                return (number << bits, largest) if fits else None
    return None


_TORCH_DTYPES = {f"at::k{cpp}": name for name, cpp in DTYPES.items()} | {
    f"at::ScalarType::{cpp}": name for name, cpp in DTYPES.items()
}
_LIST = re.compile(r"(?:c10::SmallVector<int64_t, *[\w:]+>|at::IntArrayRef)?\{(?P<sizes>.*)\}")
_EMPTY = ("at::ArrayRef<int64_t>()", "at::IntArrayRef()")
_SIZE = re.compile(r"(?P<tensor>\w+)\.size\((?P<axis>-?\d{1,2})\)")
_INTEGER = re.compile(r"(?:\(int64_t\) *)?(?P<digits>-?(?:0|[1-9]\d{0,17}))(?:ll?|LL?)?")
_CHARACTERS = re.compile(r"const_cast<char ?\*>\((?P<name>\w+)\.data\(\)\)")


def read_dtype(text: str, tensors: Set[str]) -> str | None:
    """Return a dtype of ops.toml: ``float32``, or ``=x`` for one of some tensors."""
    text = text.strip()
    if text in _TORCH_DTYPES:
        return _TORCH_DTYPES[text]
    name = text.removesuffix(".scalar_type()").removesuffix(".dtype()")
    return f"={name}" if name in tensors else None


def read_sizes(text: str, tensors: Set[str], ints: Set[str]) -> list[str | tuple[str, int]] | None:
    """Return each size of a list: an int, an argument, or a tensor and the number of its dim."""
    text = text.strip()
    if text in _EMPTY:
        return []
    match = _LIST.fullmatch(text)
    if match is None:
        return None
    sizes: list[str | tuple[str, int]] = []
    for each in cpp_text.split(match["sizes"]):
        size = _SIZE.fullmatch(each)
        number = _INTEGER.fullmatch(each)
        if size is not None and size["tensor"] in tensors:
            sizes.append((size["tensor"], int(size["axis"])))
        elif number is not None:
            sizes.append(number["digits"])
        elif each in ints:
            sizes.append(each)
        else:
            return None
    return sizes


def read_argument(text: str, strings: Set[str]) -> str | None:
    """Return a constant of a call in ops.toml, or one of some arguments that are strings."""
    text = text.strip()
    if (number := _INTEGER.fullmatch(text)) is not None:
        return str(int(number["digits"]))
    if text in ("true", "false") or text.startswith('"'):
        return _read_scalar(text, {})
    characters = _CHARACTERS.fullmatch(text)
    return characters["name"] if characters and characters["name"] in strings else None

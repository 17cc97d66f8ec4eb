"""Reads values in C++: defaults of operators; sizes, dtypes and arguments in op-plugin's yaml.

Each function returns None for text that it does not understand, or that ops.toml cannot say.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Set
from functools import lru_cache

from custom_pypto_contract import cpp_text
from custom_pypto_contract.dtypes import DTYPES

_EXPRESSION = re.compile(r"[\w.:<>()+-]{1,100}", re.ASCII)
_SUFFIXED = re.compile(
    r"\b(0[xX][\da-fA-F]+(?=[uUlL])|\d[\d.]*(?:[eE][-+]?\d+)?)(?P<suffix>[uUlLfF]{1,3})\b"
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
"""Of each type the values of MAX, MIN, LOWEST and EPSILON."""
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
"""The numbers of GE's DataType, which are those of aclDataType; both are binary interfaces."""
_NAMES: dict[str, int | float] = {f"DT_{name}": number for name, number in _DTYPES.items()} | {
    f"{kind}_{which}": value
    for kind, values in _LIMITS.items()
    for which, value in zip(("MAX", "MIN", "LOWEST", "EPSILON"), values, strict=True)
}


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
    suffixes = "".join(
        each["suffix"].upper() for each in _SUFFIXED.finditer(text.partition("<<")[0])
    )
    try:
        value = _value(ast.parse(_SUFFIXED.sub(r"\1", text.lstrip("+")), mode="eval").body)
    except SyntaxError:
        return None
    # A schema has integers of 64 bits; C++ shifts an int without a suffix in 32.
    bits = 31 if "<<" in text and not suffixes else 63
    if isinstance(value, int) and not -(2**bits) <= value < 2**bits:
        return None
    return None if value is None or ("-" in text and "U" in suffixes) else repr(value)


def _limit_of_type(limit: re.Match[str]) -> str:
    type_ = limit["type"].removesuffix("_t").upper()
    kind = {"FLOAT": "FLT", "DOUBLE": "DBL"}.get(type_, type_)
    return f"{kind}_{limit['which'].upper()}"


def _value(expression: ast.expr) -> int | float | None:
    match expression:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(name):
            return _NAMES.get(name)
        case ast.UnaryOp(ast.USub(), operand):
            number = _value(operand)
            return None if number is None else -number
        case ast.BinOp(left, ast.LShift(), right):
            number, bits = _value(left), _value(right)
            if isinstance(number, int) and isinstance(bits, int) and 0 <= bits < 64:
                return number << bits
    return None


_TORCH_DTYPES = {f"at::k{cpp}": name for name, cpp in DTYPES.items()} | {
    f"at::ScalarType::{cpp}": name for name, cpp in DTYPES.items()
}
_LIST = re.compile(r"(?:c10::SmallVector<int64_t, *[\w:]+>|at::IntArrayRef)?\{(?P<sizes>.*)\}")
_EMPTY = ("at::ArrayRef<int64_t>()", "at::IntArrayRef()")
_SIZE = re.compile(r"(?P<tensor>\w+)\.size\((?P<axis>-?\d{1,2})\)")
_INTEGER = re.compile(r"(?:\(int64_t\) *)?(?P<digits>-?\d{1,18})[lL]{0,2}")
_CHARACTERS = re.compile(r"const_cast<char ?\*>\((?P<name>\w+)\.data\(\)\)")


def read_dtype(text: str, tensors: Set[str]) -> str | None:
    """Return a dtype of ops.toml: ``float32``, or ``=x`` for one of some tensors."""
    text = text.strip()
    if text in _TORCH_DTYPES:
        return _TORCH_DTYPES[text]
    name = text.removesuffix(".scalar_type()").removesuffix(".dtype()")
    return f"={name}" if name in tensors else None


def read_tensor(text: str, tensors: Set[str]) -> str | None:
    """Return the tensor whose sizes the text is."""
    name = text.strip().removesuffix(".sizes()")
    return name if name in tensors else None


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
    text = text.strip().removeprefix("(int64_t)").lstrip()
    characters = _CHARACTERS.fullmatch(text)
    if characters is None:
        return _read_scalar(text, {})
    return characters["name"] if characters["name"] in strings else None

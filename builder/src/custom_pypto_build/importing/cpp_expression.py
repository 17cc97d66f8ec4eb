"""Reads the C++ of op-plugin's yaml: sizes, dtypes and arguments, where ops.toml can say the same.

Each function returns None for text that it does not understand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Set

from custom_pypto_contract import cpp_text
from custom_pypto_contract.dtypes import DTYPES

_TORCH_DTYPES = {f"at::k{cpp}": name for name, cpp in DTYPES.items()} | {
    f"at::ScalarType::{cpp}": name for name, cpp in DTYPES.items()
}
_LIST = re.compile(r"(?:c10::SmallVector<int64_t, *[\w:]+>|at::IntArrayRef)?\{(?P<sizes>.*)\}")
_EMPTY = ("at::ArrayRef<int64_t>()", "at::IntArrayRef()")
_SIZE = re.compile(r"(?P<tensor>\w+)\.size\((?P<axis>-?\d{1,2})\)")
_INTEGER = re.compile(r"(?:\(int64_t\) *)?(?P<digits>-?\d{1,18})[lL]{0,2}")
_STRING = re.compile(r'"(?P<text>[^"\\]*)"')
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
    text = text.strip()
    if text in ("true", "false"):
        return text.capitalize()
    number, string, characters = (
        pattern.fullmatch(text) for pattern in (_INTEGER, _STRING, _CHARACTERS)
    )
    if number is not None:
        return str(int(number["digits"]))
    if string is not None:
        return ast.unparse(ast.Constant(string["text"]))
    if characters is not None and characters["name"] in strings:
        return characters["name"]
    return None

"""The dtypes that a contract can name."""

from __future__ import annotations

from collections.abc import Mapping

DTYPES: Mapping[str, str] = {
    "bfloat16": "BFloat16",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "float8_e4m3fn": "Float8_e4m3fn",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "uint8": "Byte",
    "bool": "Bool",
}
"""The name in PyTorch, and that of C++: ``ScalarType::BFloat16``."""

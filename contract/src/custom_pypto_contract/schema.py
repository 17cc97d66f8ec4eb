"""An op's schema, as PyTorch writes it: ``name.overload(Tensor self, *, int k=1) -> Tensor``."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import cpp_text
from .errors import ContractError, at, did_you_mean
from .expression import is_representable
from .fork_locks import cached
from .op_name import NAME, parts_of_schema

ELEMENTS = ("Tensor", "int", "SymInt", "float", "bool", "str", "ScalarType", "Device")
"""The types that cross PyTorch's stable ABI; so do lists and optionals of them."""

MOST_ARGUMENTS = 64

_TYPE = re.compile(r"(?P<element>\w+)(?:\((?P<alias>[^)]*)\))?(?P<suffix>(?:\[\d*\]|\?)*)")
_ARGUMENT = re.compile(rf"(?P<type>\S.*?)\s+(?P<name>{NAME})")


@dataclass(frozen=True)
class Argument:
    """One argument: its type without alias annotation, such as ``Tensor?`` or ``int[]``.

    A SymInt is an int to a kernel.
    """

    name: str
    type: str
    is_mutable: bool
    is_keyword_only: bool
    default: str | None
    """As the schema writes it; None when there is none."""

    @property
    def default_value(self) -> Any:
        """The default as a value of Python, a list anew each time; None when there is none."""
        value = self._default_value
        return list(value) if isinstance(value, list) else value

    @cached
    def _default_value(self) -> Any:
        return ast.literal_eval(self.default or "None")

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor, or None."""
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        """Whether it is a list of tensors, or None."""
        return self.type in ("Tensor[]", "Tensor[]?")

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return self.type.endswith("?")


@dataclass(frozen=True)
class Return:
    """One return: its type, and its name or ''."""

    type: str
    name: str


@dataclass(frozen=True)
class Schema:
    """A schema, and its parts."""

    text: str
    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]


def parse_schema(text: str) -> Schema:
    """Return the schema in `text`.

    Raises:
        ContractError: it is no schema, or one that a plugin's op cannot have.
    """
    text = " ".join(text.split())
    name, taken, returned = parts_of_schema(text)
    if name.partition(".")[0] == "name":
        raise ContractError(
            "schema: an op cannot be called 'name': torch.ops.custom_pypto.name is the namespace's"
        )
    arguments = tuple(_arguments(taken))
    if len(arguments) > MOST_ARGUMENTS:
        raise ContractError(f"schema: an op takes at most {MOST_ARGUMENTS} arguments")
    names = [each.name for each in arguments]
    for each in names:
        if names.count(each) > 1:
            raise ContractError(f"schema: two arguments are called {each!r}")
    return Schema(text, name, arguments, tuple(_returns(returned)))


def _arguments(text: str) -> Iterator[Argument]:
    is_keyword_only = False
    for part in cpp_text.split(text):
        if part == "*":
            is_keyword_only = True
            continue
        declared, _, default = part.partition("=")
        match = _ARGUMENT.fullmatch(declared.strip())
        if match is None:
            raise ContractError(f"schema: {part!r} is no argument; write 'type name'")
        name = match["name"]
        if keyword.iskeyword(name):
            raise ContractError(
                f"schema: an argument cannot be called {name!r}, which is a keyword of Python"
            )
        with at(f"schema: `{name}`"):
            type_, alias = _type(match["type"])
        if type_ == "Tensor" and default.strip():
            raise ContractError(
                f"schema: argument `{name}` is a Tensor with a default, which can only be None;"
                f" write `Tensor? {name}=None`"
            )
        argument = Argument(name, type_, "!" in alias, is_keyword_only, default.strip() or None)
        _check_default(argument)
        yield argument


def _check_default(argument: Argument) -> None:
    """Check a default, which torch would let through whatever its type."""
    if argument.default is None:
        return
    try:
        value = argument.default_value
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        value = ...
    numbers = value if isinstance(value, list) else [value]
    problem = None
    if not _is_of(value, argument.type):
        words = [str(each) for each in (True, False, None) if _is_of(each, argument.type)]
        problem = f"is no {argument.type}{did_you_mean(argument.default, words)}"
    elif not all(is_representable(each) for each in numbers if isinstance(each, int | float)):
        problem = "does not fit into 64 bits"
    if problem:
        raise ContractError(
            f"schema: the default of `{argument.name}` is {argument.default}, which {problem}"
        )


def _is_of(value: Any, type_: str) -> bool:
    """Whether a literal is of a type; torch takes one number for a list of them."""
    if type_.endswith("?"):
        return value is None or _is_of(value, type_[:-1])
    if type_.endswith("[]"):
        inner = value if isinstance(value, list) else [value]
        # Torch takes no default for other lists.
        return type_ in ("int[]", "float[]") and all(_is_of(each, type_[:-2]) for each in inner)
    expected = {"float": "int float", "Device": "str"}.get(type_, type_)
    return type(value).__name__ in expected.split()


def _returns(text: str) -> Iterator[Return]:
    text = text.strip()
    is_list = text.startswith("(") and text.endswith(")")
    parts = list(cpp_text.split(text[1:-1] if is_list else text))
    if len(parts) > 1 and not is_list:
        raise ContractError(f"schema: write several returns in parentheses: ({text})")
    for part in parts:
        written, _, name = part.partition(" ")
        with at("schema: a return"):
            type_, alias = _type(written)
        if alias:
            raise ContractError(
                f"schema: a return is annotated `({alias})`, but torch.compile cannot take an op"
                " that returns an alias of an argument; return `()` and let the caller use the"
                " argument"
            )
        yield Return(type_, name.strip())


def _type(text: str) -> tuple[str, str]:
    """Return the type without its alias annotation and list sizes, and the annotation."""
    match = _TYPE.fullmatch(text)
    if match is None or match["element"] not in ELEMENTS:
        # A Device is taken, and not offered: an op has that of its tensors.
        offered = [each for each in ELEMENTS if each != "Device"]
        is_scalar = match is not None and match["element"] == "Scalar"
        raise ContractError(
            f"a {text!r} cannot cross torch's stable ABI; use {', '.join(offered)}, and lists and"
            " optionals of these"
            + ("; for a Scalar, float" if is_scalar else did_you_mean(text, offered))
        )
    element = "int" if match["element"] == "SymInt" else match["element"]
    return element + re.sub(r"\d", "", match["suffix"]), match["alias"] or ""

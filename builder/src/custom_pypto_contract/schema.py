"""An op's schema, as PyTorch writes it: ``name.overload(Tensor self, *, int k=1) -> Tensor``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import ContractError, guess

ELEMENTS = ("Tensor", "int", "float", "bool", "str", "ScalarType", "Device")
"""The types that cross PyTorch's stable ABI; so do lists and optionals of them."""

MOST_ARGUMENTS = 64

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SCHEMA = re.compile(
    rf"(?P<name>{_NAME}(?:\.{_NAME})?)\((?P<arguments>.*)\) *-> *(?P<returns>\S.*)"
)
_TYPE = re.compile(r"(?P<element>\w+)(?:\((?P<alias>[^)]*)\))?(?P<suffix>(?:\[\d*\]|\?)*)")


@dataclass(frozen=True)
class Argument:
    """One argument: its type without alias annotation, such as ``Tensor?`` or ``int[]``."""

    name: str
    type: str
    is_mutable: bool
    is_keyword_only: bool
    default: str | None
    """As the schema writes it; None when there is none."""

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor, or None."""
        return self.type in ("Tensor", "Tensor?")

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
    """Return the schema that `text` is.

    Raises:
        ContractError: it is no schema, or one that a plugin's op cannot have.
    """
    text = " ".join(text.split())
    match = _SCHEMA.fullmatch(text)
    if match is None:
        hint = "; leave the namespace out" if "::" in text.partition("(")[0] else ""
        raise ContractError(
            f"schema {text!r} must have the form 'name(arguments) -> returns' or"
            f" 'name.overload(arguments) -> returns'{hint}"
        )
    arguments = tuple(_arguments(match["arguments"]))
    names = [each.name for each in arguments]
    for name in names:
        if names.count(name) > 1:
            raise ContractError(f"schema: two arguments are called {name!r}")
    if len(arguments) > MOST_ARGUMENTS:
        raise ContractError(f"schema: an op takes at most {MOST_ARGUMENTS} arguments")
    return Schema(text, match["name"], arguments, tuple(_returns(match["returns"])))


def _arguments(text: str) -> Iterator[Argument]:
    is_keyword_only = False
    for part in _split(text):
        if part == "*":
            is_keyword_only = True
            continue
        declared, _, default = part.partition("=")
        words = declared.split()
        if len(words) != 2 or not words[1].isidentifier():
            raise ContractError(f"schema: {part!r} is no argument; write 'type name'")
        type_, alias = _type(words[0])
        if type_ == "Tensor" and default.strip():
            raise ContractError(
                f"schema: argument `{words[1]}` is a Tensor with a default, which can only be None;"
                f" write `Tensor? {words[1]}=None`"
            )
        yield Argument(words[1], type_, "!" in alias, is_keyword_only, default.strip() or None)


def _returns(text: str) -> Iterator[Return]:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    for part in _split(text):
        written, _, name = part.partition(" ")
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
        raise ContractError(
            f"schema: a {text!r} cannot cross torch's stable ABI; use {', '.join(ELEMENTS)}, and"
            f" lists and optionals of these{guess(text, ELEMENTS)}"
        )
    return match["element"] + re.sub(r"\d", "", match["suffix"]), match["alias"] or ""


def _split(text: str) -> Iterator[str]:
    """Return the parts between commas that are in no quotes and no brackets."""
    depth, quote, part = 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            yield part.strip()
            part = ""
            continue
        part += character
    if part.strip():
        yield part.strip()

"""A function of PyTorch as op-plugin writes it, with more types than an op of a plugin has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from custom_pypto_contract import cpp_text
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.op_name import NAME, parts_of_schema
from custom_pypto_contract.schema import MOST_ARGUMENTS, Argument

_ARGUMENT = re.compile(rf"(?P<type>\S+) +(?P<name>{NAME})\s*(?:=.*)?")
_ALIAS = re.compile(r"\(\w+!?(?:\|\w+!?)*(?: *-> *[\w*|!]+)?\)")
# What PyTorch's own parser of schemas makes of this default.
_MEAN = re.compile(r"= *Mean *(?=[,)])")


@dataclass(frozen=True)
class TorchFunction:
    """A function, and the schema that an op of a plugin has for it."""

    name: str
    arguments: tuple[Argument, ...]
    """In the order of the C++ function: those that are outputs stand last."""
    returns: tuple[str, ...]
    """The types of what it makes. An argument that it returns is left out: callers have it."""
    schema: str

    @property
    def is_in_place(self) -> bool:
        """Whether it writes its first argument and is named so: ``relu_``, ``__iadd__``."""
        base = self.name.partition(".")[0]
        is_named_so = base.startswith("__i") if base.endswith("__") else base.endswith("_")
        return is_named_so and bool(self.arguments) and self.arguments[0].is_mutable

    @property
    def out(self) -> tuple[str, ...]:
        """The names of the outputs that the caller allocates."""
        return tuple(each.name for each in self.arguments if _is_out(each))

    def names_of(self, type_: str) -> frozenset[str]:
        """Return the arguments with one type; a SymInt is an int."""
        return frozenset(
            each.name for each in self.arguments if each.type.replace("SymInt", "int") == type_
        )


def parse(text: str) -> TorchFunction:
    """Return the function in `text`.

    Raises:
        ContractError: it has not the form of a schema.
    """
    name, taken, returned = parts_of_schema(_MEAN.sub("=1", " ".join(text.split())))
    parts = list(cpp_text.split(taken))
    first_keyword = parts.index("*") if "*" in parts else len(parts)
    found = (_argument(each, index > first_keyword) for index, each in enumerate(parts))
    arguments = [each for each in found if each is not None]
    if len(arguments) > MOST_ARGUMENTS:
        raise ContractError(f"schema: an op takes at most {MOST_ARGUMENTS} arguments")
    returned = returned.strip()
    is_list = returned.startswith("(") and returned.endswith(")")
    made = [
        each
        for each in cpp_text.split(returned[1:-1] if is_list else returned)
        if _ALIAS.search(each) is None
    ]
    result = made[0] if len(made) == 1 and " " not in made[0] else f"({', '.join(made)})"
    return TorchFunction(
        name,
        tuple(sorted(arguments, key=_is_out)),
        tuple(each.partition(" ")[0] for each in made),
        f"{name}({', '.join(parts)}) -> {result}",
    )


@lru_cache(1024)
def _argument(text: str, is_keyword_only: bool) -> Argument | None:
    # A file repeats few texts thousands of times.
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        return None
    type_, is_mutable = _ALIAS.sub("", match["type"]), "!" in match["type"]
    return Argument(match["name"], type_, is_mutable, is_keyword_only, None)


def _is_out(argument: Argument) -> bool:
    """Whether it is written, and given by keyword alone: an output that the caller allocates."""
    return argument.is_mutable and argument.is_keyword_only

"""Compares what a launch passes to a kernel with the kernel's declaration in a header of CANN."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import cpp_text
from .aclnn_header import Parameter

REMEDY = (
    "install the opp package that the plugin was written for, or a version of the plugin for this"
    " one"
)
"""What to do about a launch that differs from the header."""

_ALSO_TAKEN_BY = {
    # ABIs widen smaller integers.
    "int64_t": re.compile(r"u?int(?:8|16|32|64)_t|int|size_t"),
    # An enum is an int.
    "aclDataType": re.compile("int32_t|int"),
}
_NAMED = re.compile(r"(?:\w+\.)?(?!(?:true|false)$)([A-Za-z_]\w*)")
"""An expression that has a name: `a.query`, `out.result` or `query`."""
_SUFFIX = re.compile(r"(?:Optional|Ref|Out)\Z")
_MOST_SUFFIXES = 4

# The worth of two aligned arguments; an argument without a partner is worth nothing.
_SAME_NAME, _SAME_TYPE, _NEITHER = 7, 3, 1


@dataclass(frozen=True)
class Launch:
    """A launch of the kernel `symbol`.

    `types` are the C types that are passed, as in ``aclTensor *``; ``nullptr`` is of any pointer
    type. `arguments` are the expressions in the source, as many, or none if they are not known.
    """

    symbol: str
    types: tuple[str, ...]
    arguments: tuple[str, ...] = ()


def make_launch(symbol: str, types: str, arguments: str) -> Launch:
    """Return a launch.

    `types` and `arguments` are lists separated by commas, as the C++ headers report them.
    """
    listed = tuple(filter(None, types.split(",")))
    expressions = tuple(cpp_text.split(arguments))
    # A template's comma is in no brackets that are counted.
    return Launch(symbol, listed, expressions if len(expressions) == len(listed) else ())


def takes(parameter: Parameter, passed: str) -> bool:
    """Return whether a launch that passes the C type `passed` fills a parameter rightly."""
    type_ = parameter.type.removeprefix("const ").replace(" const", "")
    if passed == "nullptr":
        return type_.endswith("*")
    others = _ALSO_TAKEN_BY.get(passed)
    return type_ == passed or (others is not None and others.fullmatch(type_) is not None)


def find_name(parameter: str, by_plain_name: Mapping[str, str]) -> str | None:
    """Return the name that belongs to a parameter, whose own name may have further suffixes.

    The keys of `by_plain_name` are names as `plain` returns them.
    """
    for _ in range(_MOST_SUFFIXES + 1):
        if (name := plain(parameter)) in by_plain_name:
            return by_plain_name[name]
        parameter = _SUFFIX.sub("", parameter)
    return None


def plain(name: str) -> str:
    """Return a name without what distinguishes snake case from camel case."""
    return name.replace("_", "").lower()


def find_differences(launch: Launch, parameters: Sequence[Parameter]) -> list[str]:
    """Return what of a launch does not fit a kernel's parameters, a text for each argument.

    Of arguments that have one type, only names tell that one is in another's place: a name of the
    launch that the header has for another place. Names that occur twice tell nothing.
    """
    names = _names(launch, parameters)
    partner = dict(_align(launch, parameters, names))
    taken = set(partner.values())
    missing = [j for j in range(len(parameters)) if j not in taken]
    found = []
    for i, passed in enumerate(launch.types):
        shown = f"argument {i + 1}"
        if launch.arguments:
            shown += f", `{launch.arguments[i]}`,"
        j = partner.get(i)
        if j is None:
            j = _find_place(i, launch, parameters, names, missing)
            if j is None:
                found.append(f"{shown} of type {passed} is not in the header")
                continue
            missing.remove(j)
            found.append(f"{shown} is argument {j + 1} in the header, {parameters[j]}")
        if not takes(parameters[j], passed):
            found.append(f"{shown} is passed as {passed}; the header has {parameters[j]}")
    found += [f"argument {j + 1} of the header, {parameters[j]}, is not passed" for j in missing]
    return found


def _names(launch: Launch, parameters: Sequence[Parameter]) -> dict[int, int]:
    """Return the places of arguments by name: in the launch, and in the header."""
    found = [_NAMED.fullmatch(each) for each in launch.arguments]
    passed = [plain(match[1]) if match else "" for match in found]
    by_name = {name: name for name in passed if name and passed.count(name) == 1}
    declared = [find_name(each.name, by_name) for each in parameters]
    return {
        passed.index(name): j
        for j, name in enumerate(declared)
        if name is not None and declared.count(name) == 1
    }


def _align(
    launch: Launch, parameters: Sequence[Parameter], names: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Return which arguments of both belong together, in the order of both."""
    named = set(names.values())

    def worth(i: int, j: int) -> int:
        fits = takes(parameters[j], launch.types[i])
        if names.get(i) == j:
            return _SAME_NAME + fits
        if i in names or j in named:
            return -1
        return _SAME_TYPE if fits else _NEITHER

    rows, columns = len(launch.types), len(parameters)
    # What the arguments from i and j on are worth.
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            best[i][j] = max(best[i + 1][j + 1] + worth(i, j), best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < rows and j < columns:
        if best[i][j] == best[i + 1][j + 1] + worth(i, j):
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _find_place(
    i: int,
    launch: Launch,
    parameters: Sequence[Parameter],
    names: Mapping[int, int],
    missing: Sequence[int],
) -> int | None:
    """Return which argument of the header that is `missing` the argument `i` can be."""
    if i in names:
        return names[i] if names[i] in missing else None
    fitting = [j for j in missing if takes(parameters[j], launch.types[i])]
    return fitting[0] if len(fitting) == 1 and fitting[0] not in names.values() else None

"""Constants of a plugin's kernels, for tests whose data must reach both sides of a decision."""

import re
from pathlib import Path

_TYPED = re.compile(r"\bu?int\d+_t\{(\d+)\}")


def cpp_constant(sources: Path, name: str) -> int:
    """The integer `name` that the C++ files in the folder `sources` define.

    Raises:
        AssertionError: it has not exactly one definition, or one without literal integers only.
    """
    (value,) = cpp_constants(sources, name)
    return value


def cpp_constants(sources: Path, name: str) -> list[int]:
    """As `cpp_constant`, for a `name` that may be a list in braces."""
    definition = re.compile(rf"\bconstexpr [\w:]+ {name} = ([^;]+);")
    files = [path for path in sorted(sources.rglob("*")) if path.suffix in (".h", ".cpp")]
    found = [match for path in files for match in definition.findall(path.read_text("utf-8"))]
    assert len(found) == 1, f"{len(found)} definitions of {name} in {sources}"
    values = _TYPED.sub(r"\1", found[0]).strip("{}").split(",")
    assert all(re.fullmatch(r"[\d <+*-]+", value) for value in values), f"{name} = {found[0]}"
    return [eval(value.strip()) for value in values]

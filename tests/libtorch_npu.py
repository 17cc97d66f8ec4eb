"""The functions of torch_npu that core looks up, and those that a library has."""

import importlib.util
import re
from pathlib import Path

from custom_pypto import core
from programs import run_program

_HEADERS = Path(core.__file__).parent / "include" / "custom_pypto" / "npu"


def looked_up() -> set[str]:
    """The functions of libtorch_npu.so that core's headers look up, by their mangled names."""
    text = "\n".join(each.read_text("utf-8") for each in _HEADERS.glob("*.h"))
    # Without the breaks between the lines of a string literal.
    text = re.sub(r'"\s+"', "", text)
    names = set(re.findall(r'"(_Z\w+)"', text)) - set(re.findall(r'find_in_torch\("(\w+)"', text))
    assert names, "no header names a function"
    return names


def exported(library: Path) -> set[str]:
    """The names that a library defines for others, as binutils' nm lists them."""
    options = ("--dynamic", "--defined-only", "--format=just-symbols")
    listed = run_program("nm", *options, library).stdout
    return {line.partition("@")[0] for line in listed.splitlines()}


def package(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(name)
    assert found is not None, f"{name} is not installed"
    return Path(next(iter(found.submodule_search_locations or ())))

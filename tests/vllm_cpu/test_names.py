"""The installed vLLM has what names.py lists, and names.py lists what our classes override."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_vllm import names

MODULES = sorted(path.stem for path in Path(names.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("part", names.PARTS)
def test_the_installed_vllm_has_all_names(part: str) -> None:
    assert names.mismatch(part) is None


def overridden(ours: type) -> set[tuple[str, str]]:
    """Return what a class of ours has its own of, beside the listed class of vLLM that has it."""
    found = {name: getattr(names, name) for name in names.NAMES}
    listed: dict[Any, str] = {each: name for name, each in found.items() if inspect.isclass(each)}
    base = next((each for each in ours.__mro__[1:] if each in listed), None)
    # Python and register_oot make the rest.
    written = {*re.findall(r"\w+", inspect.getsource(ours))} & vars(ours).keys() - {"name"}
    return {(listed[base], each) for each in written if base and hasattr(base, each)}


@pytest.mark.parametrize("module", MODULES)
def test_what_our_classes_override_is_listed(module: str) -> None:
    uses = {
        (name, each.partition("(")[0]) for name, about in names.NAMES.items() for each in about[1]
    }
    module = importlib.import_module(f"custom_pypto_vllm.{module}")
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass)]
    for ours in (each for each in classes if each.__module__ == module.__name__):
        assert overridden(ours) <= uses

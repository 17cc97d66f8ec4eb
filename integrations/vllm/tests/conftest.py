"""A vLLM that is not there: modules with the names that we use."""

import functools
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

import pytest
from custom_pypto_vllm import names

USED_MODULES = {module for module, _ in names.NAMES.values()}


class FakeVllm:
    """Puts modules that hold what `names` lists into sys.modules."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.module("vllm").__version__ = f"{names.NEWEST}.0+cpu"  # type: ignore[attr-defined]
        for name, (module, used) in names.NAMES.items():
            has = {each.partition("(")[0]: _function(each) for each in used}
            if (path := f"{module}.{name}") in USED_MODULES:
                made: Any = self.module(path)
            else:
                made = has.pop("", None) or type(name, (), {})
            for each, value in has.items():
                setattr(made, each, value)
            if not module.startswith("torch"):
                setattr(self.module(module), name, made)

    def module(self, name: str) -> ModuleType:
        if name not in sys.modules:
            if parent := name.rpartition(".")[0]:
                self.module(parent)
            self.monkeypatch.setitem(sys.modules, name, ModuleType(name))
        return sys.modules[name]

    def remove(self, path: str) -> None:
        """Remove a name, or an attribute of it."""
        module, _, name = path.rpartition(".")
        if module in sys.modules:
            self.monkeypatch.delattr(sys.modules[module], name)
        else:
            delattr(self.owner(module), name)

    def owner(self, path: str) -> Any:
        """Return the class, or the module of a function, of this path."""
        module, _, name = path.rpartition(".")
        return getattr(sys.modules[module], name)


@functools.cache
def _compiled(source: str) -> CodeType:
    return compile(source, "<vllm>", "eval")


def _function(signature: str) -> Any:
    """Make a function with these parameters, ``name(x,y?)``; None for a name without any."""
    _, is_function, parameters = signature.replace("?", "").partition("(")
    return eval(_compiled(f"lambda {parameters[:-1]}: None")) if is_function else None


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeVllm]:
    """Pretend that a vLLM with these names is installed, and no other."""
    for name in [each for each in sys.modules if each.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.startswith("custom_pypto_vllm.")]:
        if name not in ("custom_pypto_vllm.names", "custom_pypto_vllm.options"):
            monkeypatch.delitem(sys.modules, name)
    names.mismatch.cache_clear()
    yield FakeVllm(monkeypatch)
    names.mismatch.cache_clear()

"""Tensors that our Python makes do not follow the caller's default device.

It may be "meta" (while a model is made without memory) or an NPU, also by torch.set_default_device.
"""

import ast
from collections.abc import Iterator

from repository import ROOT
from torch.utils._device import _device_constructors

FILES = [
    file
    for package in ("*", "plugins/*", "integrations/*")
    for file in sorted(ROOT.glob(f"{package}/src/**/*.py"))
]
# torch's own list of the functions that follow the default device.
CONSTRUCTORS = {function.__name__ for function in _device_constructors()}


def without_device(source: str) -> Iterator[str]:
    """Find the calls of constructors that name no device."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or any(each.arg == "device" for each in call.keywords):
            continue
        name = ast.unparse(call.func)
        of_torch = name.startswith("torch.") or f"import {name}" in source
        if of_torch and name.rpartition(".")[2] in CONSTRUCTORS:
            yield f"{call.lineno}: {ast.unparse(call)}"


def test_every_constructor_names_a_device() -> None:
    assert len(FILES) > 200
    found = [f"{file}:{each}" for file in FILES for each in without_device(file.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_a_constructor_without_a_device_is_found() -> None:
    source = "import torch\ntorch.arange(3)\ntorch.arange(3, device=None)\ntorch.zeros_like(x)\n"
    assert list(without_device(source)) == ["2: torch.arange(3)"]
    assert list(without_device("from torch import ones\nones(3)")) == ["2: ones(3)"]

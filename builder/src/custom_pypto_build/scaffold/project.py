"""Writes the files of a new plugin, and says what they leave to its author."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_contract.call import GRAPH_ATTRIBUTES

from custom_pypto_build.ops_header import find_refusal

from . import kernels
from .new_plugin import NewOp, NewPlugin, ScaffoldError, free_name, plugin_of

_DTYPES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes of a new op's tensors; gradients that its author adds are checked in float64."""
_NARROW_DTYPES = _DTYPES[:3]
"""The subset that NPU kernels and vectors of each instruction set support."""
_PYPROJECT = """\
[build-system]
requires = ["custom-pypto-build"{blocks}]
build-backend = "custom_pypto_build"

[project]
name = "{distribution}"
version = "0.1.0"
description = "{description}"
{readme}requires-python = ">=3.10"
dependencies = ["custom-pypto-core>=0.1"]

[project.entry-points."custom_pypto.plugins"]
{name} = "{package}"

[tool.custom-pypto]
{table}
"""

_README = """\
# {distribution}

`help()` of each op shows its contract: {ops}.

```sh
pip install --no-build-isolation -e .   # again after a change of ops.toml or C++
python -m pytest tests                  # by custom-pypto-testing
pip wheel --no-build-isolation --no-deps -w dist .
```
"""

_TEST = '''\
"""The conformance suite of custom_pypto on the ops of this plugin."""

from __future__ import annotations

import custom_pypto_testing


class TestOps(custom_pypto_testing.Conformance):
    plugin = "{name}"
'''

_COMPILED = """\
sources = ["csrc/**/*.cpp"]
cxx-flags = ["-O3"]"""
_ISAS = """
include-packages = ["custom_pypto_blocks"]

[tool.custom-pypto.isa]
sources = ["csrc/cpu/kernels.cpp"]"""

_IGNORED = """\
# What a build writes.
__pycache__/
*.egg-info/
/build/
/dist/
/src/*/custom_pypto_plugin.json
/src/*/lib/
/src/*/ops.py
/src/*/py.typed
"""


def pyproject(distribution: str, description: str, table: str, readme: str = "") -> str:
    """Return pyproject.toml; `table` are the lines of ``[tool.custom-pypto]``, `readme` is one."""
    return _PYPROJECT.format(
        blocks=', "custom-pypto-blocks"' if "custom_pypto_blocks" in table else "",
        distribution=distribution,
        description=description,
        readme=readme,
        name=plugin_of(distribution),
        package=distribution.replace("-", "_"),
        table=table,
    )


def write(made: NewPlugin, folder: Path) -> list[str]:
    """Write the files into `folder`, which must not exist; return their paths in it.

    Raises:
        ScaffoldError: it exists, cannot be written, or the build would refuse the op.
    """
    compiled = _COMPILED + _ISAS if made.has_isas else _COMPILED
    table = "# Nothing to compile." if made.is_python else compiled
    ops = [each.schema.name for each in made.ops]
    description = f"custom_pypto ops: {', '.join(ops)}"
    shown = ", ".join(f"`torch.ops.custom_pypto.{op}`" for op in ops)
    readme = 'readme = "README.md"\n'
    files = {
        ".gitignore": _IGNORED,
        "README.md": _README.format(distribution=made.distribution, ops=shown),
        **kernels.sources(made),
        "ops.toml": "\n".join([*_contract(made), ""]),
        "pyproject.toml": pyproject(made.distribution, description, table, readme),
        "tests/test_conformance.py": _TEST.format(name=made.name),
    }
    reason = find_refusal(files["ops.toml"])
    if reason is not None:
        raise ScaffoldError(f"--schema: {reason}")
    try:
        if folder.exists() or folder.is_symlink():
            raise ScaffoldError(f"{folder} exists, and nothing is overwritten; choose another NAME")
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScaffoldError(f"cannot write to {folder}: {error.strerror or error}") from None
    return sorted(files)


def decisions(made: NewPlugin) -> Iterator[tuple[str, str]]:
    """Return what the schemas do not say: a subject, and what was written for now."""
    for op in made.ops:
        name, arguments = op.schema.name, op.schema.arguments
        yield f"{name}: what it computes", f"{_summary(op)} (definition in ops.toml, {made.source})"
        unused = [f"{each.name} ({each.type})" for each in arguments if each.name != op.first]
        if unused:
            yield f"{name}: not read yet", ", ".join(unused)
        if sum(each.is_tensor for each in arguments) + len(op.outputs) > 1:
            yield f"{name}: shapes and dtypes", f"every tensor is like {op.first} (ops.toml)"
        if made.has_npu:
            yield f"{name}: NPU", f"{_launch(op)}, in the order of its header (ops.toml)"
            if _graph(op) is None:
                yield f"{name}: graph", "none: an operator takes other arguments (docs/npu.md)"
    yield "licence", "none (pyproject.toml)"


def _summary(op: NewOp) -> str:
    return f"{op.first} * {op.first}, element by element"


def _kernel(op: NewOp) -> str:
    """Return the name of the kernel for NPUs: my_op has MyOp."""
    return "".join(part.capitalize() for part in re.split(r"[._]", op.schema.name))


def _launch(op: NewOp) -> str:
    passed = [*(each.name for each in op.schema.arguments), *op.outputs]
    return f"aclnn{_kernel(op)}({', '.join(passed)})"


def _graph(op: NewOp) -> str | None:
    """Return the operator in graphs, which takes fewer types of arguments; None if not these."""
    arguments = op.schema.arguments
    if not {each.type for each in arguments} <= {"Tensor", "Tensor?", *GRAPH_ATTRIBUTES}:
        return None
    named = ", ".join(f"{each.name}={each.name}" for each in arguments)
    return f"{_kernel(op)}({named}) -> {', '.join(op.outputs)}"


def _contract(made: NewPlugin) -> Iterator[str]:
    yield f"# The contract of {made.name}; docs/contract.md of custom_pypto explains the keys."
    dtypes = _NARROW_DTYPES if made.has_isas else _DTYPES
    for op in made.ops:
        yield ""
        key, first, arguments = op.schema.name, op.first, op.schema.arguments
        # The dim that stands for the whole shape.
        shape = f"*{free_name('shape', [each.name for each in arguments])}"
        # Computed in float64, rounded once.
        result, count = f"({first}.double() * {first}.double()).to({first}.dtype)", len(op.outputs)
        definition = result if count == 1 else f"({result},) * {count}"
        yield f"[{json.dumps(key) if '.' in key else key}]"
        yield f"schema = {json.dumps(op.schema.text)}"
        yield f'summary = "{_summary(op)}"'
        yield f'definition = "{definition}"'
        yield 'flops = "0"'
        yield f'bytes = "{" + ".join(f"{each}.nbytes" for each in (first, *op.outputs))}"'
        for each in arguments:
            if each.is_tensor:
                dtype = " ".join(dtypes) if each.name == first else f"={first}"
                yield f'tensors.{each.name} = {{ shape = "{shape}", dtype = "{dtype}" }}'
        for name in op.outputs:
            yield f'outputs.{name} = {{ shape = "{shape}", dtype = "={first}" }}'
        if made.has_npu:
            if dtypes != _NARROW_DTYPES:
                check = f"{first}.dtype in ({', '.join(_NARROW_DTYPES)})"
                yield f'npu.limits = [{{ argument = "{first}", check = "{check}" }}]'
            yield f'npu.launch = "{_launch(op)}"'
            if (graph := _graph(op)) is not None:
                yield f'npu.graph = "{graph}"'

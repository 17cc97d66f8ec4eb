"""Writes the files of a new plugin, and says what they leave to its author."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_build.ops_header import find_refusal

from . import kernels
from .new_plugin import NARROW_DTYPES, NewOp, NewPlugin, ScaffoldError, package_of, plugin_of

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

The ops {ops} of `torch.ops.custom_pypto`; `help()` of one shows its contract.

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
        package=package_of(distribution),
        table=table,
    )


def texts(made: NewPlugin) -> dict[str, str]:
    """Return the text of each file by its path in the plugin's folder."""
    ops = [each.schema.name for each in made.ops]
    compiled = _COMPILED + _ISAS if made.has_isas else _COMPILED
    table = "# Nothing to compile." if made.is_python else compiled
    description = f"custom_pypto ops: {', '.join(ops)}"
    return {
        ".gitignore": _IGNORED,
        "README.md": _README.format(
            distribution=made.distribution, ops=", ".join(f"`{each}`" for each in ops)
        ),
        **kernels.sources(made),
        "ops.toml": "\n".join([*_contract(made), ""]),
        "pyproject.toml": pyproject(
            made.distribution, description, table, 'readme = "README.md"\n'
        ),
        "tests/test_conformance.py": _TEST.format(name=made.name),
    }


def write(made: NewPlugin, folder: Path) -> list[str]:
    """Write the files into `folder`, which must not exist; return their paths in it.

    Raises:
        ScaffoldError: it exists, cannot be written, or the build would refuse the op.
    """
    files = texts(made)
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
        where = f"(definition in ops.toml, {made.source})"
        yield f"what {op.schema.name} computes", f"{_summary(op)} {where}"
        unused = [each for each in op.schema.arguments if each.name != op.first]
        if unused:
            yield "not read yet", ", ".join(f"{each.name} ({each.type})" for each in unused)
        tensors = [each for each in op.schema.arguments if each.is_tensor]
        if len(tensors) + len(op.outputs) > 1:
            yield "shapes and dtypes", f"those of {op.first} for every tensor (ops.toml)"
        if made.has_npu:
            yield "NPU", f"{_launch(op)}, in the order of its header (ops.toml)"
            if not op.in_graphs:
                yield "graph", "none: an operator takes other types of arguments (docs/npu.md)"
    yield "licence", "none (pyproject.toml)"


def _summary(op: NewOp) -> str:
    """Return what the op does, in a sentence."""
    return f"{op.first} * {op.first}, element by element"


def _definition(op: NewOp) -> str:
    """Return the op in PyTorch: computed in float64, rounded once."""
    square = f"{op.first}.double() * {op.first}.double()"
    result, count = f"({square}).to({op.first}.dtype)", len(op.outputs)
    return result if count == 1 else f"({result},) * {count}"


def _launch(op: NewOp) -> str:
    """Return the call of the kernel for NPUs: arguments, then outputs, in the schema's order."""
    names = [*(each.name for each in op.schema.arguments), *op.outputs]
    return f"aclnn{op.kernel}({', '.join(names)})"


def _graph(op: NewOp) -> str:
    """Return the operator in graphs, whose parameters are called as the arguments."""
    arguments = ", ".join(f"{each.name}={each.name}" for each in op.schema.arguments)
    return f"{op.kernel}({arguments}) -> {', '.join(op.outputs)}"


def _contract(made: NewPlugin) -> Iterator[str]:
    """Yield the lines of ops.toml."""
    yield f"# The contract of {made.name}; docs/contract.md of custom_pypto explains the keys."
    for op in made.ops:
        yield ""
        yield from _table(made, op)


def _table(made: NewPlugin, op: NewOp) -> Iterator[str]:
    key = op.schema.name
    yield f"[{json.dumps(key) if '.' in key else key}]"
    yield f"schema = {json.dumps(op.schema.text)}"
    yield f"summary = {json.dumps(_summary(op))}"
    yield f"definition = {json.dumps(_definition(op))}"
    yield 'flops = "0"'
    yield f'bytes = "{" + ".join(f"{each}.nbytes" for each in (op.first, *op.outputs))}"'
    for each in op.schema.arguments:
        if each.is_tensor:
            dtype = " ".join(made.dtypes) if each.name == op.first else f"={op.first}"
            yield f'tensors.{each.name} = {{ shape = "{op.dims}", dtype = "{dtype}" }}'
    for name in op.outputs:
        yield f'outputs.{name} = {{ shape = "{op.dims}", dtype = "={op.first}" }}'
    if made.has_npu:
        if made.dtypes != NARROW_DTYPES:
            check = f"{op.first}.dtype in ({', '.join(NARROW_DTYPES)})"
            yield f'npu.limits = [{{ argument = "{op.first}", check = "{check}" }}]'
        yield f'npu.launch = "{_launch(op)}"'
        if op.in_graphs:
            yield f'npu.graph = "{_graph(op)}"'

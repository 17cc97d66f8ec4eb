"""Writes the files of a new plugin, and says what they leave to its author."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_build.ops_header import find_refusal

from . import kernels
from .new_plugin import DTYPES, NPU_DTYPES, NewPlugin, ScaffoldError, package_of, plugin_of

_PYPROJECT = """\
[build-system]
requires = ["custom-pypto-build"]
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

`torch.ops.custom_pypto.{op}`, whose contract `help()` of it shows.

```sh
pip install --no-build-isolation -e .   # again after a change of ops.toml or C++
python -m pytest tests                  # by custom-pypto-testing
pip wheel --no-build-isolation --no-deps -w dist .
```
"""

_TEST = '''\
"""The conformance suite of custom_pypto on the op of this plugin."""

from __future__ import annotations

import custom_pypto_testing


class Test{title}(custom_pypto_testing.Conformance):
    plugin = "{name}"
'''

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
        distribution=distribution,
        description=description,
        readme=readme,
        name=plugin_of(distribution),
        package=package_of(distribution),
        table=table,
    )


def texts(made: NewPlugin) -> dict[str, str]:
    """Return the text of each file by its path in the plugin's folder."""
    op = made.schema.name
    compiled = 'sources = ["csrc/*.cpp"]\ncxx-flags = ["-O3"]'
    table = "# Nothing to compile." if made.is_python else compiled
    readme = 'readme = "README.md"\n'
    return {
        ".gitignore": _IGNORED,
        "README.md": _README.format(distribution=made.distribution, op=op),
        made.source: kernels.python_text(made) if made.is_python else kernels.cpp_text(made),
        "ops.toml": "\n".join([*_contract(made), ""]),
        "pyproject.toml": pyproject(made.distribution, f"custom_pypto op {op}", table, readme),
        "tests/test_conformance.py": _TEST.format(title=made.kernel, name=made.name),
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
    """Return what the schema does not say: a subject, and what was written for now."""
    yield "what it computes", f"{_summary(made)} (definition in ops.toml, {made.source})"
    unused = [each for each in made.schema.arguments if each.name != made.first]
    if unused:
        yield "not read yet", ", ".join(f"{each.name} ({each.type})" for each in unused)
    tensors = [each for each in made.schema.arguments if each.is_tensor]
    if len(tensors) + len(made.outputs) > 1:
        yield "shapes and dtypes", f"those of {made.first} for every tensor (ops.toml)"
    if made.has_npu:
        yield "NPU", f"{_launch(made)}, in the order of its header (ops.toml)"
        if not made.in_graphs:
            yield "graph", "none: an operator takes other types of arguments (docs/npu.md)"
    yield "licence", "none (pyproject.toml)"


def _summary(made: NewPlugin) -> str:
    """Return what the op does, in a sentence."""
    return f"{made.first} * {made.first}, element by element"


def _definition(made: NewPlugin) -> str:
    """Return the op in PyTorch: computed in float64, rounded once."""
    square = f"{made.first}.double() * {made.first}.double()"
    result, count = f"({square}).to({made.first}.dtype)", len(made.outputs)
    return result if count == 1 else f"({result},) * {count}"


def _launch(made: NewPlugin) -> str:
    """Return the call of the kernel for NPUs: arguments, then outputs, in the schema's order."""
    names = [*(each.name for each in made.schema.arguments), *made.outputs]
    return f"aclnn{made.kernel}({', '.join(names)})"


def _graph(made: NewPlugin) -> str:
    """Return the operator in graphs, whose parameters are called as the arguments."""
    arguments = ", ".join(f"{each.name}={each.name}" for each in made.schema.arguments)
    return f"{made.kernel}({arguments}) -> {', '.join(made.outputs)}"


def _contract(made: NewPlugin) -> Iterator[str]:
    """Yield the lines of ops.toml."""
    key = made.schema.name
    yield f"# The contract of {key}; docs/contract.md of custom_pypto explains the keys."
    yield ""
    yield f"[{json.dumps(key) if '.' in key else key}]"
    yield f"schema = {json.dumps(made.schema.text)}"
    yield f"summary = {json.dumps(_summary(made))}"
    yield f"definition = {json.dumps(_definition(made))}"
    yield 'flops = "0"'
    yield f'bytes = "{" + ".join(f"{each}.nbytes" for each in (made.first, *made.outputs))}"'
    for each in made.schema.arguments:
        if each.is_tensor:
            dtype = " ".join(DTYPES) if each.name == made.first else f"={made.first}"
            yield f'tensors.{each.name} = {{ shape = "{made.dims}", dtype = "{dtype}" }}'
    for name in made.outputs:
        yield f'outputs.{name} = {{ shape = "{made.dims}", dtype = "={made.first}" }}'
    if made.has_npu:
        check = f"{made.first}.dtype in ({', '.join(NPU_DTYPES)})"
        yield f'npu.limits = [{{ argument = "{made.first}", check = "{check}" }}]'
        yield f'npu.launch = "{_launch(made)}"'
        if made.in_graphs:
            yield f'npu.graph = "{_graph(made)}"'

"""Writes the files of a new plugin, and says what they leave to its author."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from custom_pypto_contract.errors import how_to_install

from custom_pypto_build.ops_header import find_refusal

from . import kernel_cpp, kernel_python, ops_toml
from .new_plugin import NewPlugin, ScaffoldError, package_of, plugin_of

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

`torch.ops.custom_pypto.{op}`: {summary}. `help()` of it shows its contract.

| file | says |
|---|---|
| `ops.toml` | what the op takes, checks and returns |
| `{source}` | its kernel |
| `tests/test_conformance.py` | what holds for any op |

```sh
pip install --no-build-isolation -e .   # again after a change of ops.toml or C++
python -m pytest tests                  # by custom-pypto-testing
pip wheel --no-build-isolation --no-deps -w dist .
```

custom-pypto-testing is installed {testing}.
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


def pyproject(distribution: str, description: str, table: str, *, has_readme: bool) -> str:
    """Return pyproject.toml; `table` are the lines of ``[tool.custom-pypto]``."""
    return _PYPROJECT.format(
        distribution=distribution,
        description=description,
        readme='readme = "README.md"\n' if has_readme else "",
        name=plugin_of(distribution),
        package=package_of(distribution),
        table=table,
    )


def texts(made: NewPlugin) -> dict[str, str]:
    """Return the text of each file by its path in the plugin's folder."""
    op = made.schema.name
    compiled = 'sources = ["csrc/*.cpp"]\ncxx-flags = ["-O3"]'
    table = "# Nothing to compile." if made.is_python else compiled
    readme = _README.format(
        distribution=made.distribution,
        op=op,
        summary=ops_toml.summary(made),
        testing=how_to_install("custom-pypto-testing"),
        source=made.source,
    )
    return {
        ".gitignore": _IGNORED,
        "README.md": readme,
        made.source: (kernel_python if made.is_python else kernel_cpp).text(made),
        "ops.toml": ops_toml.text(made),
        "pyproject.toml": pyproject(
            made.distribution, f"custom_pypto op {op}", table, has_readme=True
        ),
        "tests/test_conformance.py": _TEST.format(title=made.kernel, name=made.name),
    }


def write(made: NewPlugin, folder: Path) -> list[str]:
    """Write the files into `folder`, which must not exist; return their paths in it.

    Raises:
        ScaffoldError: it exists, cannot be written, or the build would refuse the op.
    """
    files = texts(made)
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


def check(made: NewPlugin) -> None:
    """Check that the build takes the op.

    Raises:
        ScaffoldError: it does not; the text is the build's.
    """
    reason = find_refusal(ops_toml.text(made))
    if reason is not None:
        raise ScaffoldError(f"--schema: {reason}")


def decisions(made: NewPlugin) -> Iterator[tuple[str, str]]:
    """Return what the schema does not say: a subject, and what was written for now."""
    yield "what it computes", f"{ops_toml.summary(made)} (definition in ops.toml, {made.source})"
    if made.unused:
        names = ", ".join(f"{each.name} ({each.type})" for each in made.unused)
        yield "not read yet", names
    tensors = [each for each in made.schema.arguments if each.is_tensor]
    if len(tensors) + len(made.outputs) > 1:
        yield "shapes and dtypes", f"those of {made.first} for every tensor (ops.toml)"
    if made.has_npu:
        yield "NPU", f"{ops_toml.launch(made)}, in the order of its header (ops.toml)"
        if not made.in_graphs:
            yield "graph", "none: an operator takes other types of arguments (docs/npu.md)"
    yield "licence", "none (pyproject.toml)"

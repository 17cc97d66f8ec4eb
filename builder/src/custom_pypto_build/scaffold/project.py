"""What a new plugin has around its op: pyproject.toml, README.md, a test, .gitignore."""

from __future__ import annotations

from . import ops_toml
from .new_plugin import NewPlugin, package_of, plugin_of

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
{rows}

```sh
pip install --no-build-isolation -e .   # again after a change of {compiled}
pip install custom-pypto-testing
python -m pytest tests
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
"""
_IGNORED_IN_PACKAGE = """\
/src/{package}/custom_pypto_plugin.json
/src/{package}/lib/
/src/{package}/ops.py
/src/{package}/py.typed
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


def pyproject_of(made: NewPlugin) -> str:
    """Return pyproject.toml of a new plugin."""
    compiled = 'sources = ["csrc/*.cpp"]\ncxx-flags = ["-O3"]'
    table = "# Nothing to compile." if made.variant.is_python else compiled
    description = f"custom_pypto op {made.schema.name}"
    return pyproject(made.distribution, description, table, has_readme=True)


def readme(made: NewPlugin) -> str:
    """Return README.md."""
    variant = made.variant
    parts = ["its kernel"] * variant.is_python + ["its derivative"] * variant.has_backward
    rows = ["| `ops.toml` | what the op takes, checks and returns |"]
    if not variant.is_python:
        kernels = "its kernel for CPUs" + (", and that for NPUs is registered" * variant.has_npu)
        rows.append(f"| `csrc/{made.op}.cpp` | {kernels} |")
    if parts:
        rows.append(f"| `src/{made.package}/__init__.py` | {' and '.join(parts)} |")
    rows.append("| `tests/test_conformance.py` | what holds for any op |")
    return _README.format(
        distribution=made.distribution,
        op=made.schema.name,
        summary=ops_toml.summary(made),
        rows="\n".join(rows),
        compiled="ops.toml" if variant.is_python else "ops.toml or csrc/",
    )


def conformance_test(made: NewPlugin) -> str:
    """Return tests/test_conformance.py."""
    return _TEST.format(title=made.kernel, name=made.name)


def gitignore(made: NewPlugin) -> str:
    """Return .gitignore."""
    in_package = _IGNORED_IN_PACKAGE.format(package=made.package) if made.has_package else ""
    return _IGNORED + in_package

"""Writes a new plugin, and says what it leaves to its author."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from custom_pypto_build.ops_header.refusal import find_refusal

from . import kernel_cpp, ops_toml, package_py, project
from .new_plugin import NewPlugin, ScaffoldError


def texts(made: NewPlugin) -> Mapping[str, str]:
    """Return the text of each file by its path in the plugin's folder."""
    files = {
        ".gitignore": project.gitignore(made),
        "README.md": project.readme(made),
        "ops.toml": ops_toml.text(made),
        "pyproject.toml": project.pyproject_of(made),
        "tests/test_conformance.py": project.conformance_test(made),
    }
    if not made.variant.is_python:
        files[f"csrc/{made.op}.cpp"] = kernel_cpp.text(made)
    if made.has_package:
        files[f"src/{made.package}/__init__.py"] = package_py.text(made)
    return dict(sorted(files.items()))


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
    return list(files)


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
    source = f"src/{made.package}/__init__.py" if made.variant.is_python else f"csrc/{made.op}.cpp"
    places = f"definition in ops.toml, {source}"
    if made.variant.has_backward and not made.variant.is_python:
        places += f", src/{made.package}/__init__.py"
    yield "what it computes", f"{ops_toml.summary(made)} ({places})"
    if made.unused:
        names = ", ".join(f"{each.name} ({each.type})" for each in made.unused)
        yield "not read yet", names
    tensors = [each for each in made.schema.arguments if each.is_tensor]
    if len(tensors) + len(made.outputs) > 1:
        yield "shapes and dtypes", f"those of {made.first} for every tensor (ops.toml)"
    if made.variant.has_npu:
        yield "NPU", f"{ops_toml.launch(made)}, in the order of its header (ops.toml)"
        if not made.in_graphs:
            yield "graph", "none: an operator takes other types of arguments (docs/npu.md)"
    yield "licence", "none (pyproject.toml)"

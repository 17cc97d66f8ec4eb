"""Writes what was imported: ops.toml, the C++ that registers it, and the list of decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from custom_pypto_contract import ops_file

from custom_pypto_build.scaffold import project
from custom_pypto_build.scaffold.new_plugin import ScaffoldError, check_name

from . import ops_toml
from .model import ImportedOp, ImportingError
from .read_files import Imported

REGISTRATION = "npu.cpp"
PROJECT = "pyproject.toml"
DECISIONS = "decisions.txt"


def write(imported: Imported, sources: Iterable[str], folder: Path) -> list[Path]:
    """Write the files into `folder`, which is made if it is missing; return their paths.

    Raises:
        ImportingError: one of them exists, or cannot be written.
    """
    ops = imported.ops
    texts = {ops_file.FILE_NAME: ops_toml.text(ops, sources)}
    if any(op.is_complete for op in ops):
        texts[REGISTRATION] = ops_toml.registration(ops)
        texts[PROJECT] = _project(ops, folder)
    if imported.decisions:
        texts[DECISIONS] = "\n".join([*imported.decisions, ""])
    paths = [folder / name for name in texts]
    try:
        for path in paths:
            if path.exists():
                raise ImportingError(f"{path} exists; name another folder by --output, or move it")
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ImportingError(f"cannot write to {folder}: {error.strerror or error}") from None
    return paths


def _project(ops: Sequence[ImportedOp], folder: Path) -> str:
    name = folder.resolve().name
    try:
        check_name(name)
    except ScaffoldError as error:
        raise ImportingError(f"--output: {error}") from None
    names = ", ".join(op.name for op in ops if op.is_complete)
    description = f"custom_pypto ops for NPUs: {names}"
    table = f'sources = ["{REGISTRATION}"]'
    return project.pyproject(name.replace("_", "-"), description, table, has_readme=False)

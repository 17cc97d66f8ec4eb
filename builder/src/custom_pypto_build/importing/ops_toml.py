"""Writes what was imported: ops.toml, the C++ that registers its kernels, and the decisions.

An op that a person must complete is written too, as comments, so that the file is always valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from custom_pypto_contract import ops_file, small_file
from custom_pypto_contract.dispatch_keys import NPU
from custom_pypto_contract.errors import ContractError

from custom_pypto_build.ops_header import find_refusal
from custom_pypto_build.ops_header.cpp_names import struct_name
from custom_pypto_build.scaffold import project
from custom_pypto_build.scaffold.new_plugin import ScaffoldError, check_name

from .model import Decision, ImportedOp, ImportingError, Subject

REGISTRATION = "npu.cpp"
PROJECT = "pyproject.toml"
DECISIONS = "decisions.txt"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPE = json.JSONEncoder(ensure_ascii=True).encode


@dataclass
class Imported:
    """What the files say."""

    ops: list[ImportedOp] = field(default_factory=list)
    """Checked."""
    skipped: list[str] = field(default_factory=list)
    """Why a file was not read as what it was said to be, a text for each such file."""

    @cached_property
    def decisions(self) -> list[str]:
        """The lines of decisions.txt: the skipped files, and each decision by file and line."""
        found = [
            (each.place.file, each.place.line, decision_line(op, each))
            for op in self.ops
            for each in op.decisions
        ]
        found.sort(key=lambda each: each[:2])
        skipped = [one_line(f"skipped: {reason}") for reason in self.skipped]
        return [*skipped, *(line for *_, line in dict.fromkeys(found))]


def check_size(ops: Iterable[ImportedOp]) -> None:
    """Check that a build would read the ops' contracts: checking each op takes a millisecond.

    Raises:
        ImportingError: they are too large.
    """
    tables = (_table(op) for op in ops if op.is_complete)
    if sum(len(line) + 1 for table in tables for line in table) > small_file.MAX_SIZE:
        reason = f"ops.toml would have more than {small_file.MAX_SIZE} bytes"
        raise ImportingError(f"{reason}; give fewer files in one call, or take one by --func")


def check(op: ImportedOp) -> ImportedOp:
    """Return the op; with a further decision if it is complete and no valid contract."""
    if not op.is_complete:
        return op
    reason = find_refusal("\n".join(_table(op)))
    if reason is not None and op.graph:
        # Only the graph line may be at fault; without it the op is complete all the same.
        without = replace(op, graph="", decisions=[*op.decisions])
        if find_refusal("\n".join(_table(without))) is None:
            without.decide(op.place, Subject.GRAPH, reason)
            return without
    if reason is not None:
        op.decide(op.place, Subject.SCHEMA, reason)
    return op


def write(imported: Imported, sources: Iterable[str], folder: Path) -> list[Path]:
    """Write the files into `folder`, which is made if it is missing; return their paths.

    Raises:
        ImportingError: one of them exists, or cannot be written.
    """
    ops = imported.ops
    texts = {
        ops_file.FILE_NAME: text(ops, sources),
        REGISTRATION: registration(ops),
        PROJECT: _project(ops, folder),
    }
    if imported.decisions:
        texts[DECISIONS] = "\n".join([*imported.decisions, ""])
    paths = [folder / name for name in texts]
    try:
        for path in paths:
            if path.exists():
                raise ImportingError(f"{path} exists; name another folder by --output, or move it")
        folder.mkdir(parents=True, exist_ok=True)
        for path, written in zip(paths, texts.values(), strict=True):
            path.write_text(written, encoding="utf-8")
    except OSError as error:
        raise ImportingError(f"cannot write to {folder}: {error.strerror or error}") from None
    return paths


def _project(ops: Sequence[ImportedOp], folder: Path) -> str:
    name = folder.resolve().name
    try:
        check_name(name)
    except ScaffoldError as error:
        raise ImportingError(f"--output: {error}") from None
    names = ", ".join(op.name for op in ops if op.is_complete) or "none is complete yet"
    table = f'sources = ["{REGISTRATION}"]'
    return project.pyproject(name.replace("_", "-"), f"custom_pypto ops for NPUs: {names}", table)


def text(ops: Iterable[ImportedOp], sources: Iterable[str]) -> str:
    """Return the text of ops.toml for checked ops from some files.

    Raises:
        ImportingError: two ops have one name, or the text is larger than a build reads.
    """
    blocks = [
        f"# Imported from {one_line(', '.join(sources))}. docs/contract.md explains the keys."
    ]
    has_contract = False
    for op in ops:
        comments = [str(op.place)]
        comments += [f"TO DECIDE ({each.place}): {each.text}" for each in op.decisions]
        table = list(_table(op)) if op.name else []
        lines = [*[f"# {one_line(each)}" for each in comments], *table]
        if op.is_complete:
            has_contract = True
        else:
            lines = [f"# {one_line(each)}" for each in lines]
        blocks.append("\n".join(lines))
    document = "\n\n".join(blocks) + "\n"
    if has_contract:
        try:
            ops_file.parse_toml(document)
        except ContractError as error:
            raise ImportingError(f"{error}; give fewer files in one call") from None
    return document


def registration(ops: Iterable[ImportedOp]) -> str:
    """Return C++ that registers the ops' launches; lines of ops with decisions are comments."""
    lines = ['#include "ops.h"', "", "CUSTOM_PYPTO_PLUGIN(plugin) {"]
    for op in ops:
        if op.name:
            name = struct_name(one_line(op.name))
            line = f'plugin.def<ops::{name}>().impl<&ops::{name}::launch>("{NPU}");'
            lines.append(f"  {line}" if op.is_complete else f"  // {line}")
    return "\n".join([*lines, "}", ""])


def decision_line(op: ImportedOp, decision: Decision) -> str:
    """Return a decision as compilers write an error: ``file:line: op: what``."""
    name = f"{op.name}: " if op.name else ""
    return one_line(f"{decision.place}: {name}{decision.text}")


def _table(op: ImportedOp) -> Iterator[str]:
    yield f"[{_key(op.name)}]"
    yield f"schema = {_string(op.schema)}"
    for name, body in op.tensors.items():
        yield f"tensors.{_key(name)} = {_inline(body)}"
    if op.rules:
        yield "rules = ["
        yield from (f"  {_inline(rule)}," for rule in op.rules)
        yield "]"
    for name, body in op.outputs.items():
        yield f"outputs.{_key(name)} = {_inline(body)}"
    if op.launch:
        yield f"npu.launch = {_string(op.launch)}"
    if op.graph:
        yield f"npu.graph = {_string(op.graph)}"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _inline(body: Mapping[str, str]) -> str:
    inner = ", ".join([f"{key} = {_string(value)}" for key, value in body.items()])
    return f"{{ {inner} }}" if inner else "{}"


def _string(value: str) -> str:
    # Strings of JSON in ASCII are strings of TOML, but for the one control character that JSON
    # does not escape and the surrogates, which the check of the op refuses.
    return _ESCAPE(value).replace("\x7f", r"\u007f")


def one_line(value: str) -> str:
    """Return a text on one line, with escapes for what a comment of TOML cannot have."""
    line = value.strip()
    if line.isprintable() and "  " not in line:
        return line
    line = " ".join(line.split())
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)

"""The rules by which Python is broken."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from .mutant import Mutant

_COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "//": "*", "/": "*", "%": "+", "|": "&", "&": "|"}


def mutants(file: Path, source: str) -> Iterator[Mutant]:
    """Return every break of a file."""
    yield from _Finder(file, source).all()


class _Finder:
    def __init__(self, file: Path, source: str) -> None:
        self._file = file
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._texts = source.splitlines(keepends=True)

    def all(self) -> Iterator[Mutant]:
        tree = ast.parse(self._source)
        skipped = {id(inner) for node in ast.walk(tree) for inner in _unbreakable(node)}
        for node in ast.walk(tree):
            if id(node) not in skipped:
                yield from self._of(node)

    def _of(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left, _, comparators):
                for one, other in zip([left, *comparators], comparators, strict=False):
                    yield from self._between(one, other, _COMPARISONS, "comparison")
            case ast.BoolOp(_, values):
                for one, other in pairwise(values):
                    yield from self._between(one, other, {"and": "or", "or": "and"}, "and, or")
            case ast.BinOp(left, _, right):
                yield from self._between(left, right, _ARITHMETIC, "arithmetic")
            case ast.UnaryOp(ast.Not()):
                start = self._start(node)
                yield self._mutant(start, start + len("not "), "", "not")
            case ast.Constant(bool(value)):
                yield self._mutant(*self._span(node), str(not value), "bool")
            case ast.Constant(int(value)):
                yield self._mutant(*self._span(node), str(value + 1), "number")
            case ast.If(test) | ast.IfExp(test) | ast.While(test):
                start, end = self._span(test)
                text = f"not ({self._source[start:end]})"
                yield self._mutant(start, end, text, "condition")
            case ast.Return(ast.expr() as value) if not _is_none(value):
                yield self._mutant(*self._span(value), "None", "result")
            case ast.Raise() | ast.Expr(ast.Call()) | ast.AugAssign():
                yield self._mutant(*self._span(node), "pass", "statement")

    def _between(
        self, one: ast.expr, other: ast.expr, operators: dict[str, str], rule: str
    ) -> Iterator[Mutant]:
        start, end = self._span(one)[1], self._start(other)
        found = re.search(r"not\s+in|is\s+not|[a-z]+|[^\s()\\]+", self._source[start:end])
        operator = " ".join(found[0].split()) if found else ""
        if found and operator in operators:
            begin = start + found.start()
            yield self._mutant(begin, start + found.end(), operators[operator], rule)

    def _start(self, node: ast.expr) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def _offset(self, line: int, column: int) -> int:
        # Columns count bytes.
        before = self._texts[line - 1].encode()[:column].decode()
        return self._lines[line - 1] + len(before)

    def _mutant(self, start: int, end: int, text: str, rule: str) -> Mutant:
        return Mutant(self._file, start, end, text, rule)


def _unbreakable(node: ast.AST) -> Iterator[ast.AST]:
    """Return what nothing can notice: types, texts in f-strings, what only type checkers read."""
    match node:
        case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
            yield from ast.walk(annotation)
        case ast.FunctionDef(returns=ast.expr() as returns):
            yield from ast.walk(returns)
        case ast.JoinedStr():
            yield from ast.walk(node)
        case ast.If(ast.Name("TYPE_CHECKING")):
            yield from ast.walk(node)
        case ast.Assign([ast.Name(name)], value) if name[:1].isupper() and "[" in ast.unparse(
            value
        ):
            # A name of a type, such as Tree = dict[str, int] | None.
            yield from ast.walk(value)
        case ast.Expr(ast.Call(ast.Attribute(ast.Name("logger")))):
            yield from ast.walk(node)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None

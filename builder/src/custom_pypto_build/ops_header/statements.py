"""The statements of a function that checks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from custom_pypto_contract.checks import Bind, Branch, Check, Step
from custom_pypto_contract.expression import Message
from custom_pypto_contract.names import find_tensors_read

from .expressions import Expressions
from .names import identifier, quoted


class Statements:
    """Writes the statements of one function of an op."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        # Tensors that have been read into a local View.
        self._views: set[str] = set()

    def of(self, steps: Iterable[Step], pad: str = "    ") -> Iterator[str]:
        """Return the lines of checks, bindings and branches."""
        for step in steps:
            yield from self._step(step, pad)

    def views(self, nodes: Iterable[ast.expr], pad: str = "    ") -> Iterator[str]:
        """Return the lines that make a View of each tensor before it is read first."""
        yield from self._views_of(find_tensors_read(nodes), pad)

    def _step(self, step: Step, pad: str) -> Iterator[str]:
        if isinstance(step, Check):
            yield from self.views(_nodes(step), pad)
            yield f"{pad}if (CUSTOM_PYPTO_UNLIKELY(!({self._expressions.text(step.condition)}))) {{"
            yield f"{pad}  custom_pypto::fail({self._failure(step.argument, step.message)});"
            yield f"{pad}}}"
        elif isinstance(step, Bind):
            yield from self.views(_nodes(step), pad)
            dim = f"s.{identifier(step.dim)}"
            have = self._expressions.is_bound(step.dim)
            only_if = f"if (!({have})) " if step.may_be_bound else ""
            yield f"{pad}{only_if}{dim} = {self._expressions.text(step.value)};"
        else:
            yield from self._branch(step, pad)

    def _branch(self, branch: Branch, pad: str) -> Iterator[str]:
        yield from self._views_of(self._required(branch), pad)
        word = "if"
        yield from self.views([condition for condition, _ in branch.cases], pad)
        for condition, inner in branch.cases:
            outer_views = set(self._views)
            yield f"{pad}{word} ({self._expressions.text(condition)}) {{"
            yield from self.of(inner, f"{pad}  ")
            self._views = outer_views
            word = "} else if"
        yield f"{pad}}}"

    def _views_of(self, names: Iterable[str], pad: str) -> Iterator[str]:
        for name in sorted(names):
            if name in self._expressions.types and name not in self._views:
                self._views.add(name)
                yield f"{pad}const custom_pypto::View {name}_view(a.{identifier(name)});"

    def _required(self, step: Step) -> set[str]:
        """The tensors that a step reads and that every call gives."""
        if isinstance(step, Branch):
            inside = (self._required(each) for _, steps in step.cases for each in steps)
            return set().union(*inside)
        return {
            name
            for name in find_tensors_read(_nodes(step))
            if not self._expressions.types.get(name, "?").endswith("?")
        }

    def _failure(self, argument: str | None, message: Message) -> str:
        parts = [
            quoted(each) if isinstance(each, str) else self._expressions.message_text(each)
            for each in message
        ]
        return ", ".join(["name", quoted(argument) if argument else "nullptr", *parts])


def _nodes(step: Check | Bind) -> list[ast.expr]:
    """Return the expressions of a step for which tensors are viewed."""
    if isinstance(step, Bind):
        return [step.value]
    # An attribute alone, in a message, is printed without a view.
    return [
        step.condition,
        *(part for part in step.message if not isinstance(part, str | ast.Attribute)),
    ]

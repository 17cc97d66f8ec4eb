"""The statements of a function that checks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from custom_pypto_contract.checks import Bind, Branch, Check, Each, Step
from custom_pypto_contract.expression import Message
from custom_pypto_contract.expression_names import find_attributes
from custom_pypto_contract.nodes import list_of

from .cpp_names import identifier, info, quoted
from .expressions import Expressions


class Statements:
    """Writes the statements of one function of an op."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        # Tensors that have been read into a local TensorInfo.
        self._infos: set[str] = set()

    def of(self, steps: Iterable[Step], pad: str = "    ") -> Iterator[str]:
        """Return the lines of checks, bindings and branches."""
        for step in steps:
            yield from self._step(step, pad)

    def infos(self, nodes: Iterable[ast.expr], pad: str = "    ") -> Iterator[str]:
        """Return the lines that make a TensorInfo of each tensor before it is read first."""
        yield from self._infos_of({name for name, _ in find_attributes(nodes)}, pad)

    def _step(self, step: Step, pad: str) -> Iterator[str]:
        if isinstance(step, Check):
            yield from self.infos(_nodes(step), pad)
            yield f"{pad}if (CUSTOM_PYPTO_UNLIKELY(!({self._expressions.text(step.condition)}))) {{"
            yield f"{pad}  custom_pypto::fail({self._failure(step.argument, step.message)});"
            yield f"{pad}}}"
        elif isinstance(step, Bind):
            yield from self.infos(_nodes(step), pad)
            dim = f"s.{identifier(list_of(step.dim))}"
            have = self._expressions.is_bound(step.dim)
            only_if = f"if (!({have})) " if step.may_be_bound else ""
            value = self._expressions.text(step.value)
            bind = f"{dim} = {value}" if list_of(step.dim) == step.dim else f"{dim}.add({value})"
            yield f"{pad}{only_if}{bind};"
        elif isinstance(step, Each):
            yield from self.infos([step.count], pad)
            outer_infos = set(self._infos)
            yield f"{pad}for (int64_t i = 0; i < {self._expressions.text(step.count)}; ++i) {{"
            yield from self.of(step.steps, f"{pad}  ")
            self._infos = outer_infos
            yield f"{pad}}}"
        else:
            yield from self._branch(step, pad)

    def _branch(self, branch: Branch, pad: str) -> Iterator[str]:
        yield from self._infos_of(self._required(branch), pad)
        word = "if"
        yield from self.infos([condition for condition, _ in branch.cases], pad)
        for condition, inner in branch.cases:
            outer_infos = set(self._infos)
            yield f"{pad}{word} ({self._expressions.text(condition)}) {{"
            yield from self.of(inner, f"{pad}  ")
            self._infos = outer_infos
            word = "} else if"
        yield f"{pad}}}"

    def _infos_of(self, names: Iterable[str], pad: str) -> Iterator[str]:
        for name in sorted(names):
            if list_of(name) in self._expressions.types and name not in self._infos:
                self._infos.add(name)
                tensor = f"a.{identifier(name)}"
                if list_of(name) != name:
                    tensor = self._expressions.tensor(name)
                yield f"{pad}const custom_pypto::TensorInfo {info(name)}({tensor});"

    def _required(self, step: Step) -> set[str]:
        """The tensors that a step reads and that every call gives."""
        if isinstance(step, Branch):
            inside = (self._required(each) for _, steps in step.cases for each in steps)
            return set().union(*inside)
        if isinstance(step, Each):
            inside = (self._required(each) for each in step.steps)
            return {each for each in set().union(*inside) if list_of(each) == each}
        return {
            name
            for name, _ in find_attributes(_nodes(step))
            if list_of(name) != name or not self._expressions.types.get(name, "?").endswith("?")
        }

    def _failure(self, argument: str | None, message: Message) -> str:
        parts = [
            quoted(each) if isinstance(each, str) else self._expressions.message_text(each)
            for each in message
        ]
        named = quoted(argument) if argument else "nullptr"
        if argument and list_of(argument) != argument:
            named = f"{{{quoted(list_of(argument))}, i}}"
        return ", ".join(["name", named, *parts])


def _nodes(step: Check | Bind) -> list[ast.expr]:
    """Return the expressions of a step for which tensors are viewed."""
    if isinstance(step, Bind):
        return [step.value]
    # An attribute alone, in a message, is printed without one.
    return [
        step.condition,
        *(part for part in step.message if not isinstance(part, str | ast.Attribute)),
    ]

"""The table of one op in ops.toml, as the normalised data of its contract."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import keys
from .errors import ContractError, any_of, guess
from .expression import parse
from .schema import parse_schema

Table = dict[str, Any]


class OpTable:
    """Fills in the groups and kinds that one op names, and what it leaves out."""

    def __init__(self, name: str, body: Any, kinds: Table, groups: Table) -> None:
        if not isinstance(body, dict) or "schema" not in body:
            overloads = body if isinstance(body, dict) else {}
            for key, value in overloads.items():
                if isinstance(value, dict) and "schema" in value:
                    raise ContractError(f'an overload is written ["{name}.{key}"]')
            raise ContractError("schema is missing; every table but kinds and groups is an op")
        for key, value in body.items():
            if isinstance(value, dict) and "schema" in value:
                raise ContractError(f'{key!r} is no key; an overload is written ["{name}.{key}"]')
        keys.OP("", body)
        self._kinds = kinds
        self._groups = groups
        self._included = list(dict.fromkeys(self._all_included(body, ())))
        self._body = body
        self._schema = parse_schema(body["schema"])
        if self._schema.name != name:
            raise ContractError(f"schema: it is the schema of {self._schema.name!r}")
        self._arguments = {each.name: each for each in self._schema.arguments}

    def data(self) -> Table:
        """Return the normalised data."""
        tensors = self._tensors()
        return {
            "schema": self._schema.text,
            "about": self._body.get("about", ""),
            "definition": self._body.get("definition", ""),
            "tensors": [self._tensor(name, tensors[name]) for name in self._order(tensors)],
            "rules": [*self._scalars(), *self._rules(tensors)],
            "outputs": self._outputs(),
            "words": self._merged("words"),
            "groups": {each: self._members(each) for each in self._included},
            "npu": self._npu(),
        }

    def _all_included(self, body: Table, path: tuple[str, ...]) -> Iterator[str]:
        for name in _words(body.get("include", "")):
            if name not in self._groups:
                raise ContractError(
                    f"include: there is no [groups.{name}]{guess(name, self._groups)}"
                )
            if name in path:
                raise ContractError(f"include: circular: {' -> '.join((*path, name))}")
            yield from self._all_included(self._groups[name], (*path, name))
            yield name

    def _bodies(self) -> Iterator[Table]:
        """The included groups, the innermost first, then the op."""
        yield from (self._groups[name] for name in self._included)
        yield self._body

    def _members(self, group: str) -> list[str]:
        """The arguments of a group and of those that it includes."""
        names = list(dict.fromkeys(self._all_included(self._groups[group], (group,))))
        inside = {
            tensor for name in (*names, group) for tensor in self._groups[name].get("tensors", {})
        }
        return [name for name in self._arguments if name in inside]

    def _merged(self, key: str) -> Table:
        merged: Table = {}
        for body in self._bodies():
            for name, value in body.get(key, {}).items():
                merged[name] = _merge(merged.get(name), value)
        return merged

    def _tensors(self) -> dict[str, Table]:
        tensors = self._merged("tensors")
        expected = [name for name, argument in self._arguments.items() if argument.is_tensor]
        for name in tensors:
            if name not in expected:
                raise ContractError(
                    f"tensors: the schema has no tensor {name!r}{guess(name, expected)}"
                )
        missing = [name for name in expected if name not in tensors]
        if tensors and missing:
            raise ContractError(
                f"tensors: {missing[0]!r} is missing; every tensor of the schema has an entry,"
                " which may be {}"
            )
        return tensors

    def _order(self, tensors: Table) -> list[str]:
        said = [name for body in self._bodies() for name in _words(body.get("order", ""))]
        for name in said:
            if name not in tensors:
                raise ContractError(f"order: there is no tensor {name!r}{guess(name, tensors)}")
        rest = (name for name in self._arguments if name in tensors)
        own = _words(self._body.get("order", ""))
        return list(dict.fromkeys([*own, *said, *rest]))

    def _tensor(self, name: str, body: Table) -> Table:
        where = f"tensors.{name}"
        if "kind" in body:
            body = {**self._kind(where, body["kind"]), **body}
        shape = body.get("shape")
        if isinstance(shape, list):
            shape = {f"{name}.rank": {str(len(each.split())): each for each in shape}}
        strides = body.get("strides", "any")
        only = body.get("only")
        argument = self._arguments[name]
        for key in ("required", "only"):
            if key in body and not argument.is_optional:
                raise ContractError(f"{where}.{key}: the schema has a Tensor, which is never None")
        if "rank" in body and not (isinstance(shape, str) and shape.startswith("*")):
            raise ContractError(f"{where}.rank: it is of a shape that begins with *name")
        return {
            "name": name,
            "shape": self._tree(f"{where}.shape", shape),
            "rank": list(body.get("rank", ())),
            "dtype": body.get("dtype", ""),
            "required": self._tree(f"{where}.required", body.get("required")),
            "only": None if only is None else self._tree(f"{where}.only", _as_choice(only)),
            "strides": strides,
            "hint": body.get("hint", ""),
            "words": body.get("words", ""),
            "values": self._tree(f"{where}.values", body.get("values")),
        }

    def _kind(self, where: str, text: str) -> Table:
        """Return the entries of ``weight(H, L+R)``, its parameters replaced in its shapes."""
        name, _, given = text.removesuffix(")").partition("(")
        if name not in self._kinds:
            raise ContractError(
                f"{where}.kind: there is no [kinds.{name}]{guess(name, self._kinds)}"
            )
        kind = {key: value for key, value in self._kinds[name].items() if key != "rules"}
        parameters = kind.pop("parameters", "").split()
        values = re.split(r",\s*", given) if given else []
        if len(parameters) != len(values):
            raise ContractError(
                f"{where}.kind: {name} takes {len(parameters)} parameters, got {text!r}"
            )
        return {
            **kind,
            "shape": _replaced(kind["shape"], dict(zip(parameters, values, strict=True))),
        }

    def _tree(self, where: str, value: Any) -> Any:
        """Return the normalised tree of a leaf, or of ``{selector: {value: tree}}``."""
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ContractError(
                f"{where}: it is chosen by one thing, got {', '.join(value) or 'none'}"
            )
        [(selector, of)] = value.items()
        if not isinstance(of, dict):
            raise ContractError(f"{where}: write {selector} = {{ value = .. }}")
        return {
            "by": selector,
            "of": [
                [self._value(where, selector, key), self._tree(where, each)]
                for key, each in of.items()
            ],
        }

    def _value(self, where: str, selector: str, key: str) -> Any:
        """Return the value of `selector` that `key` of a table stands for."""
        argument = self._arguments.get(selector)
        if argument is None and not selector.endswith(".rank"):
            raise ContractError(
                f"{where}: there is no argument {selector!r} to choose by"
                f"{guess(selector, self._arguments)}"
            )
        kind = "int" if argument is None else argument.type.removesuffix("?")
        try:
            if kind == "bool":
                return {"true": True, "false": False}[key]
            return int(key) if kind == "int" else key
        except (KeyError, ValueError):
            raise ContractError(f"{where}: {selector} cannot be {key!r}") from None

    def _scalars(self) -> Iterator[Table]:
        scalars = self._body.get("scalars", {})
        for name, text in scalars.items():
            argument = self._arguments.get(name)
            if argument is None or argument.is_tensor:
                known = [each.name for each in self._arguments.values() if not each.is_tensor]
                raise ContractError(
                    f"scalars: the schema has no scalar {name!r}{guess(name, known)}"
                )
            with_name = f"{name} {text}"
            says = _says(name, parse(with_name))
            if says is None:
                raise ContractError(
                    f"scalars.{name}: {text!r} is no '>= 1' or 'in (0, 3)'; write a rule for it"
                )
            when = f"{name} is not None" if argument.is_optional else None
            yield {"of": name, "that": with_name, "when": when, "says": says}

    def _rules(self, tensors: Mapping[str, Table]) -> list[Table]:
        rules = [
            self._rule(f"kinds.{kind}.rules", {"of": name, **_of_tensor(rule, name)})
            for name in self._order(dict(tensors))
            if (kind := tensors[name].get("kind", "").partition("(")[0])
            for rule in self._kinds.get(kind, {}).get("rules", ())
        ]
        for body in self._bodies():
            for rule in body.get("rules", ()):
                read = self._rule("rules", rule)
                if read not in rules:
                    rules.append(read)
        return rules

    def _rule(self, where: str, rule: Table, because: str = "") -> Table:
        for key in ("of", "that"):
            if key not in rule:
                raise ContractError(f"{where}: {key!r} is missing in {rule}")
        says = rule.get("says") or _says(rule["of"], parse(rule["that"]))
        if says is None:
            raise ContractError(f"{where}: {rule['that']!r}: say what the error says, with 'says'")
        if because:
            says += f" ({because})"
        return {"of": rule["of"], "that": rule["that"], "when": rule.get("when"), "says": says}

    def _outputs(self) -> list[Table] | None:
        outputs = self._body.get("outputs")
        if outputs is None:
            return None
        if len(outputs) != len(self._schema.returns):
            raise ContractError(
                f"outputs: {len(outputs)} of them, but the schema has"
                f" {len(self._schema.returns)} returns"
            )
        return [self._output(f"outputs.{name}", name, each) for name, each in outputs.items()]

    def _output(self, where: str, name: str, body: Table) -> Table:
        like = body.get("like")
        if name in self._arguments:
            raise ContractError(f"{where}: an argument is called {name!r} too")
        if like is not None and len(body) > 1:
            raise ContractError(f"{where}: like says shape and dtype; leave them out, or like")
        if like is None and not {"shape", "dtype"} <= set(body):
            raise ContractError(f"{where}: write shape and dtype, or like")
        dtype = body.get("dtype", "")
        if like is None and len(dtype.split()) != 1:
            raise ContractError(f"{where}.dtype: an output has one dtype, got {dtype!r}")
        return {
            "name": name,
            "shape": self._tree(f"{where}.shape", body.get("shape")),
            "dtype": dtype,
            "like": like,
        }

    def _npu(self) -> Table:
        npu = self._body.get("npu", {})
        limits: dict[str, list[Table]] = {}
        # The op's own first: of several that are broken, the error is of what it says itself.
        for body in (self._body, *(self._groups[each] for each in self._included)):
            for name, each in _named_limits(body.get("npu", {}).get("limits", {})):
                where = f"npu.limits.{name}".removesuffix(".")
                limits.setdefault(name, []).extend(
                    self._rule(where, rule, each.get("because", "")) for rule in each["rules"]
                )
        return {
            "limits": limits,
            "fits": {name: " ".join(text.split()) for name, text in npu.get("fits", {}).items()},
            "launch": _lines(npu.get("launch", ())),
            "graph": _lines(npu.get("graph", ())),
        }


def _named_limits(limits: Any) -> Iterator[tuple[str, Table]]:
    """Limits by the name of what has them: a list is of all NPU kernels."""
    if isinstance(limits, list):
        yield "", {"rules": limits}
    else:
        yield from limits.items()


def _words(text: str | list[str]) -> list[str]:
    return text.split() if isinstance(text, str) else list(text)


def _lines(value: str | Iterable[str]) -> list[str]:
    return [" ".join(each.split()) for each in ([value] if isinstance(value, str) else value)]


def _merge(old: Any, new: Any) -> Any:
    return {**old, **new} if isinstance(old, dict) and isinstance(new, dict) else new


def _as_choice(only: Table) -> Table:
    """``{layout = ["PA_BSND"]}`` as a table of values."""
    return {
        selector: dict.fromkeys(
            (str(each).lower() if each in (True, False) else each for each in values), True
        )
        for selector, values in only.items()
    }


def _replaced(shape: Any, values: Mapping[str, str]) -> Any:
    """Return the shapes with parameters replaced; in an expression, in parentheses."""
    if isinstance(shape, list):
        return [_replaced(each, values) for each in shape]
    pattern = re.compile("|".join(rf"\b{re.escape(each)}\b" for each in values) or "(?!)")

    def replaced(token: str) -> str:
        if token in values:
            return values[token]
        return pattern.sub(lambda match: _in_parentheses(values[match[0]]), token)

    return " ".join(map(replaced, shape.split()))


def _in_parentheses(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _of_tensor(rule: Table, name: str) -> Table:
    """A kind's rule for one tensor of it, which it calls `self`."""
    return {key: re.sub(r"\bself\b", name, text) for key, text in rule.items()}


def _says(of: str, that: ast.expr) -> str | None:
    """Return the message of a rule that a word says; None for others."""
    match that:
        case ast.Compare(left, [ast.In()], [ast.Tuple(elements)]):
            value = ast.unparse(left)
            if value not in (of, f"{of}.dtype"):
                return None
            quote = (
                "'"
                if isinstance(elements[0], ast.Constant) and isinstance(elements[0].value, str)
                else ""
            )
            return f"must be {any_of(map(ast.unparse, elements))}, got {quote}{{{value}}}{quote}"
        case ast.Compare(ast.Name(name), [operator], [ast.Constant(limit)]) if name == of:
            words = _COMPARISONS.get(type(operator))
            return None if words is None else f"must be {words}{limit!r}, got {{{of}}}"
    return None


_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.GtE: "at least ",
    ast.LtE: "at most ",
    ast.Gt: "more than ",
    ast.Lt: "less than ",
    ast.Eq: "",
}

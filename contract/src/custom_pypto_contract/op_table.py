"""The tables of ops.toml, made into the normalised data of contracts.

Constants are replaced first, then an op's groups and templates are filled in, and the keys that it
leaves out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import notation
from .dtypes import DTYPES
from .errors import ContractError, any_of, check_known
from .expression import is_representable, parse
from .expression_names import names_in
from .notation import Key
from .schema import parse_schema

Table = dict[str, Any]
Constant = bool | int | float | str | list[Any]
Constants = Mapping[str, Constant]

_KEYS = (*notation.OP, *notation.TEMPLATE, *notation.RULE, *notation.LIMITS_OF_KERNEL)
_TREES = frozenset(key.name for key in _KEYS if key.is_tree)
# Prose, names of other things, and the values of arguments.
_KEPT = frozenset(key.name for key in _KEYS if key.is_prose).union(
    ("argument", "like", "include", "check_order", "parameters", "dtype", "allowed_when")
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# The keys of these tables are an author's names.
_NAMED = frozenset(("tensors", "outputs", "scalars", "limits", "supports"))


def fill_in_constants(constants: Constants, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of an op, a group or a template with constants replaced by their values.

    They are replaced in expressions, shapes and calls, in braces of messages, and in defaults of a
    schema; a list stands for the values behind ``in``.
    """
    if not constants:
        return dict(body)
    names = "|".join(map(re.escape, constants))
    # Leaves out names in quotes, attributes, kernels' names and parameters' names.
    value_pattern = re.compile(rf"{_QUOTED}|(?<!\w)(?<![\w)\]]\.)({names})\b(?!\(|\s*=(?!=))")
    default_pattern = re.compile(rf"{_QUOTED}|(?<==)\s*({names})\b")

    def written(match: re.Match[str], *, is_schema: bool = False) -> str:
        if match[1] is None:
            return match[0]
        return _written(constants[match[1]], is_schema=is_schema)

    def shown(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name in constants:
            return _shown(name, constants[name])
        return f"{{{value_pattern.sub(written, match[1])}}}"

    def fill_in_value(key: str | None, value: Any) -> Any:
        if key in _KEPT:
            return value
        if isinstance(value, dict):
            return {
                name: fill_in_value(_key_within(key, name), each) for name, each in value.items()
            }
        if isinstance(value, list):
            return [fill_in_value(key, each) for each in value]
        if not isinstance(value, str):
            return value
        if key == "message":
            return re.sub(r"\{(.*?)\}", shown, value)
        if key == "schema":
            return default_pattern.sub(partial(written, is_schema=True), value)
        return value_pattern.sub(written, value)

    return {key: fill_in_value(key, value) for key, value in body.items()}


def _key_within(key: str | None, name: str) -> str | None:
    """Return the key that says what `name` in the table of `key` holds."""
    if key in _TREES:
        # The names in a tree are arguments and their values.
        return key
    return None if key in _NAMED else name


def check_constants(constants: Constants) -> None:
    """Check the names and values of constants.

    Raises:
        ContractError: a name is a dtype's, a list is empty or of several types, or C++ does not
            have a number.
    """
    for name, value in constants.items():
        if name in DTYPES or not name.isupper():
            raise ContractError(f"[constants]: {name!r}: write the name in upper case")
        if isinstance(value, list) and len({type(each) for each in value}) != 1:
            raise ContractError(f"[constants]: {name}: a list has values of one type, got {value}")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, (int, float)) and not is_representable(each):
                raise ContractError(f"[constants]: {name}: {each} does not fit into 64 bits")


def _written(value: Constant, *, is_schema: bool) -> str:
    """Return a value as an expression, or as a default of a schema."""
    if not isinstance(value, list):
        return repr(value)
    values = ", ".join(map(repr, value))
    return f"[{values}]" if is_schema else f"({values},)"


def _shown(name: str, value: Constant) -> str:
    shown = any_of(map(str, value)) if isinstance(value, list) else str(value)
    if "{" in shown or "}" in shown:
        raise ContractError(f"message: {name} has braces, which no message can show: {shown!r}")
    return shown


@dataclass(frozen=True, eq=False)
class Template:
    """One template: its name, and its table."""

    name: str
    body: Mapping[str, Any]

    def fill_in(self, where: str, text: str) -> dict[str, Any]:
        """Return the keys of a tensor whose template is `text`.

        Raises:
            ContractError: the number of parameters is wrong.
        """
        parameters = self.body.get("parameters", "").split()
        _, _, given = text.removesuffix(")").partition("(")
        values = re.split(r",\s*", given) if given else []
        if len(parameters) != len(values):
            raise ContractError(
                f"{where}: {self.name} takes {len(parameters)} parameters, got {text!r}"
            )
        replaced = dict(zip(parameters, values, strict=True))
        return {
            key: _replace(value, replaced) if key in ("shape", "values") else value
            for key, value in self.body.items()
            if key not in ("parameters", "rules")
        }

    def rules_of(self, tensor: str) -> Iterator[dict[str, str]]:
        """Return the rules for one tensor, which they call ``self``."""
        for rule in self.body.get("rules", ()):
            of_tensor = {key: re.sub(r"\bself\b", tensor, text) for key, text in rule.items()}
            yield {"argument": tensor, **of_tensor}


def _replace(shape: Any, values: Mapping[str, str]) -> Any:
    """Return shapes with parameters replaced; inside an expression, in parentheses."""
    if isinstance(shape, dict):
        return {key: _replace(each, values) for key, each in shape.items()}
    if isinstance(shape, list):
        return [_replace(each, values) for each in shape]
    pattern = re.compile("|".join(rf"\b{re.escape(each)}\b" for each in values) or "(?!)")

    def written(match: re.Match[str]) -> str:
        value = values[match[0]]
        return value if value.isidentifier() or value.isdigit() else f"({value})"

    def replace_in(token: str) -> str:
        return values[token] if token in values else pattern.sub(written, token)

    return " ".join(map(replace_in, shape.split()))


class OpTable:
    """Fills in the groups and templates that one op names, and the keys that it leaves out."""

    def __init__(
        self, name: str, body: Any, templates: Mapping[str, Template], groups: Table
    ) -> None:
        """`body` is the table of the op `name`, in a document with `templates` and `groups`.

        Raises:
            ContractError: it is no op, has a wrong key, or another op's schema.
        """
        _check_is_op(name, body)
        notation.validate(notation.OP, body)
        self._templates = templates
        self._groups = groups
        self._included = list(dict.fromkeys(self._all_included(body, ())))
        self._body = body
        self._schema = parse_schema(body["schema"])
        if self._schema.name != name:
            raise ContractError(f"schema: it is the schema of {self._schema.name!r}")
        self._arguments = {each.name: each for each in self._schema.arguments}

    def data(self) -> Table:
        """Return the normalised data.

        Raises:
            ContractError: a key says something that does not fit the schema.
        """
        tensors = self._tensors()
        order = self._check_order(tensors)
        of_templates = {name: self._template(name, tensors[name]) for name in order}
        used = {each.name: each for each in of_templates.values() if each}
        return {
            "schema": self._schema.text,
            "summary": self._body.get("summary", ""),
            "definition": self._body.get("definition", ""),
            "random": self._body.get("random", False),
            "tensors": [self._tensor(name, tensors[name], of_templates[name]) for name in order],
            "rules": [*self._scalars(), *self._rules(of_templates)],
            "outputs": self._outputs(),
            "flops": self._tree("flops", self._body.get("flops")),
            "bytes": self._tree("bytes", self._body.get("bytes")),
            "descriptions": self._merged("descriptions"),
            "groups": {each: self._members(each) for each in self._included},
            "templates": {
                each: [name for name in self._arguments if of_templates.get(name) is template]
                for each, template in sorted(used.items())
            },
            "npu": self._npu(),
        }

    def _all_included(self, body: Table, path: tuple[str, ...]) -> Iterator[str]:
        for name in _words(body.get("include", "")):
            check_known(name, self._groups, f"include: there is no [groups.{name}]")
            if name in path:
                raise ContractError(f"include: circular: {' -> '.join((*path, name))}")
            yield from self._all_included(self._groups[name], (*path, name))
            yield name

    def _bodies(self) -> Iterator[Table]:
        """The included groups, the innermost first, then the op."""
        yield from (self._groups[name] for name in self._included)
        yield self._body

    def _members(self, group: str) -> list[str]:
        """The arguments that a group, and the groups that it includes, describe."""
        names = list(dict.fromkeys(self._all_included(self._groups[group], (group,))))
        inside = {
            argument
            for name in (*names, group)
            for key in ("tensors", "scalars")
            for argument in self._groups[name].get(key, {})
        }
        return [name for name in self._arguments if name in inside]

    def _merged(self, key: str) -> Table:
        merged: Table = {}
        for body in self._bodies():
            for name, value in body.get(key, {}).items():
                old = merged.get(name)
                if isinstance(old, dict) and isinstance(value, dict):
                    value = {**old, **value}
                merged[name] = value
        return merged

    def _tensors(self) -> dict[str, Table]:
        tensors = self._merged("tensors")
        expected = [name for name, argument in self._arguments.items() if argument.is_tensor]
        lists = [name for name, argument in self._arguments.items() if argument.is_tensor_list]
        for name in tensors:
            check_known(name, [*expected, *lists], f"tensors: the schema has no tensor {name!r}")
        missing = [name for name in expected if name not in tensors]
        if tensors and missing:
            raise ContractError(
                f"tensors: {missing[0]!r} is missing; every tensor of the schema has an entry,"
                " which may be {}"
            )
        return tensors

    def _check_order(self, tensors: Table) -> list[str]:
        named = [name for body in self._bodies() for name in _words(body.get("check_order", ""))]
        for name in named:
            check_known(name, tensors, f"check_order: there is no tensor {name!r}")
        rest = (name for name in self._arguments if name in tensors)
        own = _words(self._body.get("check_order", ""))
        return list(dict.fromkeys([*own, *named, *rest]))

    def _template(self, tensor: str, body: Table) -> Template | None:
        if "template" not in body:
            return None
        name = body["template"].partition("(")[0]
        where = f"tensors.{tensor}.template"
        check_known(name, self._templates, f"{where}: there is no [templates.{name}]")
        return self._templates[name]

    def _tensor(self, name: str, body: Table, template: Template | None) -> Table:
        where = f"tensors.{name}"
        if template is not None:
            body = {**template.fill_in(f"{where}.template", body["template"]), **body}
        shape = body.get("shape")
        for key in ("required_when", "allowed_when"):
            if key in body and not self._arguments[name].is_optional:
                raise ContractError(f"{where}.{key}: the schema has a Tensor, which is never None")
        if "ndim" in body and not (isinstance(shape, str) and shape.startswith("*")):
            raise ContractError(f"{where}.ndim: only a shape that begins with *name has it")
        is_list = self._arguments[name].is_tensor_list
        if "length" in body and not is_list:
            raise ContractError(f"{where}.length: only a Tensor[] has it")
        if isinstance(shape, list) and is_list:
            raise ContractError(
                f"{where}.shape: all tensors of a list have one shape, such as 'M[i] K'"
            )
        if isinstance(shape, list):
            by_ndim = {str(len(each.split())): each for each in shape}
            if len(by_ndim) != len(shape):
                raise ContractError(f"{where}.shape: a list has a shape per ndim: ['N', 'B N']")
            shape = {f"{name}.ndim": by_ndim}
        values = {**body, "shape": shape, "allowed_when": _as_choice(body.get("allowed_when"))}
        return {"name": name, **self._normalised(where, notation.TENSOR, values)}

    def _normalised(self, where: str, keys: Iterable[Key], values: Table) -> Table:
        """Return the values of all keys, with defaults for what is left out."""

        def normalise(key: Key) -> Any:
            value = values.get(key.name)
            if value is None:
                return copy(key.default)
            return self._tree(f"{where}.{key.name}", value) if key.is_tree else value

        return {key.name: normalise(key) for key in keys}

    def _tree(self, where: str, value: Any) -> Any:
        """Return the normalised tree of a leaf, or of ``{selector: {value: tree}}``."""
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ContractError(
                f"{where}: it is chosen by one thing, got {', '.join(value) or 'none'}"
            )
        [(selector, of)] = value.items()
        if not of:
            raise ContractError(f"{where}: {selector} has no value to choose by")
        return {
            "by": selector,
            "of": [
                [self._value(where, selector, key), self._tree(where, each)]
                for key, each in of.items()
            ],
        }

    def _value(self, where: str, selector: str, key: str) -> Any:
        """Return the value of `selector` that `key` of a table stands for."""
        if not selector.endswith(".ndim"):
            problem = f"{where}: there is no argument {selector!r} to choose by"
            check_known(selector, self._arguments, problem)
        argument = self._arguments.get(selector)
        type_ = "int" if argument is None else argument.type.removesuffix("?")
        try:
            if type_ == "bool":
                return {"true": True, "false": False}[key]
            if type_ == "int" and not is_representable(int(key)):
                raise ValueError
            return int(key) if type_ == "int" else key
        except (KeyError, ValueError):
            raise ContractError(f"{where}: {selector} cannot be {key!r}") from None

    def _scalars(self) -> Iterator[Table]:
        scalars = self._merged("scalars")
        known = [each.name for each in self._arguments.values() if not each.is_tensor]
        for name in scalars:
            check_known(name, known, f"scalars: the schema has no scalar {name!r}")
        for name in (each for each in known if each in scalars):
            parts = scalars[name].split(" and ")
            check = " and ".join(f"{name} {each}" for each in parts)
            begins_well = all(each.lstrip().startswith(("<", ">", "==", "in ")) for each in parts)
            message = _own_message(name, parse(check)) if begins_well else None
            if message is None:
                raise ContractError(
                    f"scalars.{name}: {scalars[name]!r} must go on after the name, as '>= 1',"
                    " '> 0 and < inf' or 'in (0, 3)' do; write a rule for anything else"
                )
            when = f"{name} is not None" if self._arguments[name].is_optional else None
            yield {"argument": name, "check": check, "when": when, "message": message}

    def _rules(self, of_templates: Mapping[str, Template | None]) -> list[Table]:
        rules = [
            _rule(f"templates.{template.name}.rules", rule)
            for name, template in of_templates.items()
            if template
            for rule in template.rules_of(name)
        ]
        for body in self._bodies():
            for each in body.get("rules", ()):
                rule = _rule("rules", each)
                if rule not in rules:
                    rules.append(rule)
        return rules

    def _outputs(self) -> list[Table] | None:
        outputs = self._body.get("outputs")
        if outputs is None:
            return None
        names = [each.name for each in self._schema.returns]
        are_named = all(a in ("", b) for a, b in zip(names, outputs, strict=False))
        if len(names) != len(outputs) or not are_named:
            returns = self._schema.text.rpartition("-> ")[2]
            problem = f"they are {', '.join(outputs) or 'none'}, but the schema returns {returns}"
            raise ContractError(f"outputs: {problem}")
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
        return {"name": name, **self._normalised(where, notation.OUTPUT, body)}

    def _npu(self) -> Table:
        npu = self._body.get("npu", {})
        limits: dict[str, list[Table]] = {}
        # The op's own rules come first: if several are broken, the error is about one of them.
        for body in (self._body, *(self._groups[each] for each in self._included)):
            given = body.get("npu", {}).get("limits", {})
            # A list holds the rules for every kernel.
            by_kernel: Table = {"": {"rules": given}} if isinstance(given, list) else given
            for name, each in by_kernel.items():
                where = f"npu.limits.{name}".removesuffix(".")
                limits.setdefault(name, []).extend(
                    _rule(where, rule, each.get("reason", "")) for rule in each["rules"]
                )
        supports = npu.get("supports", {})
        return {
            "limits": limits,
            "supports": {name: " ".join(text.split()) for name, text in supports.items()},
            "launch": _lines(npu.get("launch", ())),
            "graph": _lines(npu.get("graph", ())),
        }


def _check_is_op(name: str, body: Any) -> None:
    inner = body if isinstance(body, dict) else {}
    for key, value in inner.items():
        if isinstance(value, dict) and "schema" in value:
            raise ContractError(f'{key!r} is no key; an overload is written ["{name}.{key}"]')
    if "schema" not in inner:
        others = any_of(notation.DOCUMENT)
        raise ContractError(f"schema is missing; every table but {others} is an op")


def _rule(where: str, rule: Table, reason: str = "") -> Table:
    message = rule.get("message") or _own_message(rule["argument"], parse(rule["check"]))
    if message is None:
        raise ContractError(f"{where}: {rule['check']!r}: write the error's words as 'message'")
    return {
        "argument": rule["argument"],
        "check": rule["check"],
        "when": rule.get("when"),
        "message": f"{message} ({reason})" if reason else message,
    }


def _words(text: str | list[str]) -> list[str]:
    return text.split() if isinstance(text, str) else list(text)


def _lines(value: str | Iterable[str]) -> list[str]:
    return [" ".join(each.split()) for each in ([value] if isinstance(value, str) else value)]


def _as_choice(allowed_when: Table | None) -> Table | None:
    """Return ``{layout = ["PA_BSND"]}`` as a table of values."""
    if allowed_when is None:
        return None
    return {
        selector: {
            str(each).lower() if isinstance(each, bool) else str(each): True for each in values
        }
        for selector, values in allowed_when.items()
    }


def _own_message(argument: str, check: ast.expr) -> str | None:
    """Return the message that a check has without an author's; None where it has none."""
    match check:
        case ast.Compare(left, [ast.In()], [ast.Tuple(elements)]):
            value = ast.unparse(left)
            if value not in (argument, f"{argument}.dtype"):
                return None
            has_texts = isinstance(elements[0], ast.Constant) and isinstance(elements[0].value, str)
            quote = "'" if has_texts else ""
            return f"must be {any_of(map(ast.unparse, elements))}, got {quote}{{{value}}}{quote}"
        case ast.BoolOp(ast.And(), parts):
            pass
        case _:
            parts = [check]
    phrases = [_phrase(argument, each) for each in parts]
    if not all(phrases):
        return None
    return f"must be {' and '.join(filter(None, phrases))}, got {{{argument}}}"


def _phrase(argument: str, check: ast.expr) -> str | None:
    """Return what a comparison of an argument with a number demands, in words."""
    match check:
        case ast.Compare(ast.Name(name), [operator], [limit]) if name == argument:
            words = _COMPARISONS.get(type(operator))
            if words is not None and not names_in(limit):
                return words + ast.unparse(limit)
    return None


_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.GtE: "at least ",
    ast.LtE: "at most ",
    ast.Gt: "more than ",
    ast.Lt: "less than ",
    ast.Eq: "",
}

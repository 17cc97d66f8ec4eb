"""The contract of one op: what its arguments must be and what it returns.

`Op.from_data` makes it of the plain data that ops_file.py writes into a plugin's manifest. That
data is normalised: groups and kinds are filled in, and nothing in it has a default, so that a later
version of this package reads it as it was meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import expression, types
from .call import Call, parse_call
from .errors import ContractError, guess
from .expression import DTYPES, Message, parse_message
from .schema import Argument, Schema, parse_schema
from .shape import Choice, Dim, Shape, Tree, choices, leaves, parse_shape

STRIDES = ("any", "last", "all")


@dataclass(frozen=True)
class Dtypes:
    """The dtypes allowed, and the tensor whose dtype is allowed besides; empty: any."""

    allowed: tuple[str, ...]
    same_as: str | None

    @classmethod
    def parse(cls, text: str) -> Dtypes:
        """Return what ``"float16 float32"``, ``"=x"`` or ``"=x float32"`` says."""
        words = text.split()
        same = [word[1:] for word in words if word.startswith("=")]
        allowed = tuple(word for word in words if not word.startswith("="))
        for word in allowed:
            if word not in DTYPES:
                raise ContractError(f"{word!r} is no dtype{guess(word, DTYPES)}")
        if len(same) > 1:
            raise ContractError(f"{text!r} names two tensors")
        return cls(allowed, same[0] if same else None)

    @property
    def are_any(self) -> bool:
        """Whether every dtype is allowed."""
        return not self.allowed and self.same_as is None


@dataclass(frozen=True)
class Tensor:
    """What a tensor argument must be."""

    name: str
    is_optional: bool
    shape: Tree
    """Of `Shape`; None: any shape."""
    ranks: tuple[int, ...]
    """Those of a shape with a variadic dim; empty: any."""
    dtype: Dtypes
    required: Tree
    """Of texts, by value: why it must be given; None: it need not be."""
    only: Choice | None
    """The values with which it may be given."""
    strides: str
    """``last``: the last dimension is contiguous; ``all``: the tensor is."""
    hint: str
    """What to do about wrong strides, or a wrong shape that is variadic as a whole."""
    words: str | Mapping[str, str]
    """What its dims are, for messages: of all of them, or by dim."""
    values: Tree
    """Of texts: which integers may be in it, for samples; kernels check them by themselves."""

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape in each variant."""
        return tuple(leaves(self.shape))


@dataclass(frozen=True)
class Rule:
    """``that`` holds, if ``when`` does; else the error names the argument ``of`` and says why."""

    of: str
    that: ast.expr
    when: ast.expr | None
    says: Message

    @property
    def asked(self) -> set[str]:
        """The names of which the rule asks whether they are None."""
        nodes = [self.that, *([] if self.when is None else [self.when])]
        return {name for node in nodes for name in expression.compared_with_none(node)}


@dataclass(frozen=True)
class Output:
    """One return. `like`: with shape, dtype and strides of that argument, instead of the others."""

    name: str
    shape: Tree
    dtype: Dtypes
    like: str | None


@dataclass(frozen=True)
class Npu:
    """What NPU kernels are, and what they take."""

    limits: Mapping[str, tuple[Rule, ...]]
    """By the name of what has them; of all NPU kernels under ''."""
    fits: Mapping[str, ast.expr]
    """By name: where a kernel fits that is not the only way."""
    launch: tuple[Call, ...]
    graph: tuple[Call, ...]


@dataclass(frozen=True, eq=False)
class Op:
    """The contract of an op."""

    schema: Schema
    about: str
    definition: str
    """The op in PyTorch: an expression of its arguments and ``torch``; or ''."""
    tensors: tuple[Tensor, ...]
    """In the order in which they are checked: the first that has a dim binds it."""
    rules: tuple[Rule, ...]
    outputs: tuple[Output, ...] | None
    """None: the contract does not say what the op returns."""
    words: Mapping[str, str]
    groups: Mapping[str, tuple[str, ...]]
    """By name: arguments that several ops share."""
    npu: Npu
    data: Mapping[str, Any]
    """What it was made of, with the keys of a manifest's op."""

    @property
    def name(self) -> str:
        """Its name, with the overload when it has one."""
        return self.schema.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The schema's arguments."""
        return self.schema.arguments

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Op:
        """Return the contract that the normalised `data` is.

        Raises:
            ContractError: it cannot be meant; the text names the key.
        """
        with _at("schema"):
            schema = parse_schema(data["schema"])
        arguments = {argument.name: argument for argument in schema.arguments}
        op = cls(
            schema=schema,
            about=data["about"],
            definition=_definition(data["definition"]),
            tensors=tuple(_tensor(each, arguments) for each in data["tensors"]),
            rules=tuple(_rules(data["rules"], "rules")),
            outputs=_outputs(data["outputs"]) if schema.returns else (),
            words=data["words"],
            groups={name: tuple(each) for name, each in data["groups"].items()},
            npu=_npu(data["npu"]),
            data=data,
        )
        _check_names(op)
        return op

    def argument(self, name: str) -> Argument:
        """Return the argument called `name`."""
        return next(each for each in self.arguments if each.name == name)

    @cached_property
    def selectors(self) -> dict[str, list[Any]]:
        """Everything that is chosen by, with its values in order."""
        trees = [tree for t in self.tensors for tree in (t.shape, t.required, t.only, t.values)]
        trees += [output.shape for output in self.outputs or ()]
        found: dict[str, list[Any]] = {}
        for choice in (each for tree in trees for each in choices(tree)):
            values = found.setdefault(choice.selector, [])
            values.extend(value for value in choice.of if value not in values)
        return found

    @cached_property
    def dims(self) -> dict[str, bool]:
        """The named dims in the order in which they are bound, and whether each is variadic."""
        names = {argument.name for argument in self.arguments}
        return {
            dim.name: dim.is_variadic
            for tensor in self.tensors
            for shape in tensor.shapes
            for dim in shape
            if dim.name is not None and dim.name not in names
        }

    @cached_property
    def may_be_none(self) -> frozenset[str]:
        """The optional arguments, and the dims that some calls do not have."""
        always = {name for tensor in self.tensors for name in self.always_has(tensor)}
        optional = (each.name for each in self.arguments if each.is_optional)
        return frozenset((*optional, *(name for name in self.dims if name not in always)))

    def always_has(self, tensor: Tensor) -> set[str]:
        """Return the named dims that a tensor has in every call."""
        return set() if tensor.is_optional else self._always_has(tensor.shape)

    def _always_has(self, tree: Tree) -> set[str]:
        if tree is None:
            return set()
        if isinstance(tree, Choice):
            if self.left_out(tree):
                return set()
            return set.intersection(*map(self._always_has, tree.of.values()))
        return {dim.name for dim in tree if dim.name is not None and dim.name in self.dims}

    def left_out(self, choice: Choice) -> list[Any]:
        """Return the values that a choice says nothing for, though the selector can have them."""
        return [value for value in self.values_of(choice.selector) if value not in choice.of]

    def values_of(self, selector: str) -> list[Any]:
        """Return what a selector can be: by a rule of it, or by the shapes of its tensor.

        Of one that may be anything, that is None among them.
        """
        name, _, is_rank = selector.partition(".")
        if is_rank:
            return next((ranks_of(each) for each in self.tensors if each.name == name), [None])
        argument = self.argument(name)
        if argument.type == "bool":
            return [False, True]
        for rule in self.rules:
            match rule.that:
                case ast.Compare(ast.Name(of), [ast.In()], [ast.Tuple(elements)]) if (
                    of == name and rule.when is None and not argument.is_optional
                ):
                    return [each.value for each in elements if isinstance(each, ast.Constant)]
        return [None]

    def is_of_scalars(self, rule: Rule) -> bool:
        """Whether the rule can be checked before any tensor is looked at."""
        scalars = {each.name for each in self.arguments if not each.is_tensor}
        return expression.names(rule.that) | _names_of(rule.when) <= scalars

    def words_of(self, tensor: Tensor, text: str) -> str:
        """Return what a message says that a dim of `tensor` is."""
        if isinstance(tensor.words, str):
            return tensor.words or self.words.get(text, text)
        return tensor.words.get(text) or self.words.get(text, text)


def ranks_of(tensor: Tensor) -> list[Any]:
    """Return the ranks that a tensor can have; with None, it can have any."""
    own = tensor.shape
    if isinstance(own, Choice) and own.ranked == tensor.name:
        return list(own.of)
    if tensor.is_optional or not tensor.shapes:
        return [None]
    if any(shape and shape[0].is_variadic for shape in tensor.shapes):
        return list(tensor.ranks) or [None]
    return sorted({len(shape) for shape in tensor.shapes})


def _definition(text: str) -> str:
    with _at("definition"):
        try:
            ast.parse(text or "None", mode="eval")
        except SyntaxError as error:
            raise ContractError(f"{text!r} is no Python expression: {error.msg}") from None
    return text


def _names_of(node: ast.expr | None) -> set[str]:
    return set() if node is None else expression.names(node)


class _at:  # noqa: N801
    """Puts the key before the text of an error."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, ContractError):
            raise ContractError(f"{self._key}: {error}") from None


def _tensor(data: Mapping[str, Any], arguments: Mapping[str, Argument]) -> Tensor:
    name = data["name"]
    with _at(f"tensors.{name}"):
        with _at("shape"):
            shape = _tree(data["shape"], parse_shape)
        with _at("dtype"):
            dtype = Dtypes.parse(data["dtype"])
        if data["strides"] not in STRIDES:
            raise ContractError(f"strides must be one of {', '.join(STRIDES)}")
        only = data["only"]
        return Tensor(
            name=name,
            is_optional=arguments[name].is_optional,
            shape=shape,
            ranks=tuple(data["rank"]),
            dtype=dtype,
            required=_tree(data["required"], str),
            only=None if only is None else _tree(only, bool),
            strides=data["strides"],
            hint=data["hint"],
            words=data["words"],
            values=_tree(data["values"], str),
        )


def _tree(data: Any, leaf: Any) -> Tree:
    """Return the tree of ``{"by": selector, "of": [[value, tree], ...]}`` and leaves."""
    if data is None:
        return None
    if isinstance(data, dict):
        return Choice(data["by"], {value: _tree(each, leaf) for value, each in data["of"]})
    return leaf(data)


def _rules(data: list[Mapping[str, Any]], where: str) -> Iterator[Rule]:
    for index, each in enumerate(data):
        with _at(f"{where}[{index}] (of {each['of']!r})"):
            when = each["when"]
            yield Rule(
                of=each["of"],
                that=expression.parse(each["that"]),
                when=None if when is None else expression.parse(when),
                says=parse_message(each["says"]),
            )


def _outputs(data: list[Mapping[str, Any]] | None) -> tuple[Output, ...] | None:
    if data is None:
        return None
    outputs = []
    for each in data:
        with _at(f"outputs.{each['name']}"):
            shape = _tree(each["shape"], parse_shape)
            outputs.append(Output(each["name"], shape, Dtypes.parse(each["dtype"]), each["like"]))
    return tuple(outputs)


def _npu(data: Mapping[str, Any]) -> Npu:
    with _at("npu"):
        fits = {}
        for name, text in data["fits"].items():
            with _at(f"fits.{name}"):
                fits[name] = expression.parse(text)
        launch: list[Call] = []
        graph: list[Call] = []
        for key, calls in (("launch", launch), ("graph", graph)):
            with _at(key):
                calls.extend(map(parse_call, data[key]))
        return Npu(
            limits={
                name: tuple(_rules(rules, f"limits.{name}".removesuffix(".")))
                for name, rules in data["limits"].items()
            },
            fits=fits,
            launch=tuple(launch),
            graph=tuple(graph),
        )


def _check_names(op: Op) -> None:
    """Check that every name is of an argument, of a dtype, or of a dim that is bound by then."""
    known: dict[str, str] = dict.fromkeys(DTYPES, "dtype")
    for argument in op.arguments:
        if argument.name in known:
            raise ContractError(f"schema: {argument.name!r} is a dtype, and no argument's name")
        known[argument.name] = types.of_argument(argument.type)
    for selector in op.selectors:
        _check_selector(op, selector)
    for tensor in op.tensors:
        with _at(f"tensors.{tensor.name}"):
            _check_dtype(op, tensor.dtype)
            bound: dict[str, str] = {}
            for shape in tensor.shapes:
                with _at("shape"):
                    bound |= _check_shape(op, shape, known)
            known |= bound
    for key, rules in (("rules", op.rules), *op.npu.limits.items()):
        for rule in rules:
            _check_rule(key, rule, op, known)
    for name, fit in op.npu.fits.items():
        _check_type(f"npu.fits.{name}", fit, known, "bool")
        _check_guards(f"npu.fits.{name}", op, fit, op.may_be_none)
    if op.outputs is not None:
        _check_outputs(op, op.outputs, known)
    outputs = {output.name for output in op.outputs or ()}
    for call in (*op.npu.launch, *op.npu.graph):
        _check_known(
            f"npu: {call.text!r}", call.names, outputs | {each.name for each in op.arguments}
        )


def _check_shape(op: Op, shape: Shape, known: types.Types) -> dict[str, str]:
    """Check the dims of a tensor; return those that it may bind."""
    inside: dict[str, str] = {}
    for dim in shape:
        if dim.name is not None and dim.name not in known:
            inside[dim.name] = "sizes" if dim.is_variadic else "int"
        names = {**known, **inside}
        for name in sorted(expression.names(dim.expression) - set(names)):
            raise ContractError(
                f"{dim.text!r} uses {name!r}, which no tensor before it has (they are checked in"
                f" the order of the schema, unless 'order' says another){guess(name, names)}"
            )
        _check_dim(op, dim, names)
    return inside


def _check_dim(op: Op, dim: Dim, known: types.Types) -> None:
    found = types.type_of(dim.expression, known)
    if found != ("sizes" if dim.is_variadic else "int"):
        raise ContractError(f"{dim.text!r} is of type {found}, and no size")
    for name in sorted(expression.names(dim.expression)):
        if any(each.name == name and each.is_optional for each in op.arguments):
            raise ContractError(f"{dim.text!r} uses {name!r}, which may be None")


def _check_dtype(op: Op, dtype: Dtypes) -> None:
    if dtype.same_as is not None:
        _check_is_given(op, "dtype", dtype.same_as)


def _check_is_given(op: Op, key: str, name: str) -> None:
    """Check that `name` is a tensor that is never None."""
    tensors = {each.name: each for each in op.arguments if each.is_tensor}
    if name not in tensors:
        raise ContractError(f"{key}: there is no tensor {name!r}{guess(name, tensors)}")
    if tensors[name].is_optional:
        raise ContractError(f"{key}: {name!r} may be None")


def _check_outputs(op: Op, outputs: tuple[Output, ...], known: types.Types) -> None:
    for output, returned in zip(outputs, op.schema.returns, strict=True):
        with _at(f"outputs.{output.name}"):
            if returned.type != "Tensor":
                raise ContractError(
                    f"the schema returns {returned.type} here; outputs are of type Tensor only:"
                    " leave them out, and return from the kernel what it makes"
                )
            if output.like is not None:
                _check_is_given(op, "like", output.like)
            elif not any(each.type == "Tensor" for each in op.arguments):
                raise ContractError(
                    "no argument is a Tensor that says its device: leave outputs out, and return"
                    " from the kernel what it makes"
                )
            _check_dtype(op, output.dtype)
            for shape in leaves(output.shape):
                for dim in shape:
                    _check_known("shape", expression.names(dim.expression), known)
                    _check_dim(op, dim, known)


def _check_rule(key: str, rule: Rule, op: Op, known: types.Types) -> None:
    arguments = [each.name for each in op.arguments]
    if rule.of not in arguments:
        raise ContractError(f"{key}: there is no argument {rule.of!r}{guess(rule.of, arguments)}")
    key = f"{key} (of {rule.of!r})"
    _check_type(key, rule.that, known, "bool")
    if rule.when is not None:
        _check_type(f"{key}: when", rule.when, known, "bool")
    for part in rule.says:
        if isinstance(part, ast.expr):
            _check_type(f"{key}: says", part, known, "")
    may_be_none = op.may_be_none & rule.asked
    if rule.when is not None:
        _check_guards(f"{key}: when", op, rule.when, may_be_none)
        may_be_none -= expression.given_if(rule.when, True)
    _check_guards(key, op, rule.that, may_be_none)
    may_be_none -= expression.given_if(rule.that, False)
    for part in rule.says:
        # What is None is printed so.
        if isinstance(part, ast.expr) and not isinstance(part, ast.Name):
            _check_guards(f"{key}: says", op, part, may_be_none)


def _check_guards(key: str, op: Op, node: ast.expr, may_be_none: Set[str]) -> None:
    """Check that an expression uses nothing where that may be None."""
    comparable = {each.name for each in op.arguments}
    for name in sorted(expression.unguarded(node, may_be_none, comparable)):
        raise ContractError(
            f"{key}: {ast.unparse(node)!r} uses {name!r} where it may be None; ask first:"
            f" '{name} is None or ..', '{name} is not None and ..'"
        )


def _check_type(key: str, node: ast.expr, known: types.Types, expected: str) -> None:
    """Check an expression, which is `expected`, or anything that can be printed."""
    _check_known(key, expression.names(node), known)
    with _at(key):
        found = types.type_of(node, known)
        if found != expected and (expected or found in ("tensor", "list")):
            raise ContractError(
                f"{ast.unparse(node)!r} is of type {found}"
                + (f", where {expected} is needed" if expected else ", which no message shows")
            )


def _check_known(key: str, used: set[str], known: Iterable[str]) -> None:
    for name in sorted(used - set(known)):
        raise ContractError(
            f"{key}: {name!r} is no argument, no dim and no dtype{guess(name, known)}"
        )


def _check_selector(op: Op, selector: str) -> None:
    name, _, attribute = selector.partition(".")
    for argument in op.arguments:
        if argument.name == name and argument.is_tensor == bool(attribute):
            return
    raise ContractError(
        f"{selector!r} is nothing to choose by: name a string, bool or int argument, or"
        f" '<tensor>.rank'{guess(name, (each.name for each in op.arguments))}"
    )

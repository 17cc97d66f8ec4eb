"""Writes ops.h, the C++ that comes of ops.toml: an op's arguments, sizes, checks and outputs.

Each op is a struct in the namespace ``ops``; `custom_pypto/op_contract.h` has what they share, and
docs/contract.md shows how a kernel uses them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from typing import Any

from custom_pypto_contract import checks
from custom_pypto_contract.call import Call, Value
from custom_pypto_contract.checks import Bind, Branch, Check, Step
from custom_pypto_contract.contract import Op, Output
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.expression import Message, looked_at
from custom_pypto_contract.schema import Argument
from custom_pypto_contract.shape import Choice, Shape, Tree, leaves

FILE_NAME = "ops.h"

_DTYPES = {
    "bfloat16": "BFloat16",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "uint8": "Byte",
    "bool": "Bool",
}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_ELEMENTS = {
    "Tensor": "Tensor",
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "ScalarType": "ScalarType",
    "Device": "custom_pypto::Device",
}
# Words of C++, and what the text around a name says.
_TAKEN = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    EOF NULL errno int64_t linux std uint64_t unix
    Arguments Kernel Outputs ScalarType Sizes Tensor custom_pypto ops
    """.split()  # noqa: SIM905
)
# What a struct of an op has in it, which it therefore cannot be called.
_MEMBERS = frozenset(
    """
    allocate argument_names arguments check check_limits launch mutable_arguments name run schema
    returned sizes
    """.split()  # noqa: SIM905
)


def text(ops: Iterable[Op]) -> str:
    """Return the text of ops.h."""
    found = tuple(ops)
    _check_names(found)
    launches = any(op.npu.launch for op in found)
    lines = [
        "// Generated from ops.toml; change that, not this.",
        "#pragma once",
        "",
        "#include <custom_pypto/op_contract.h>",
        *(["#include <custom_pypto/npu/launch.h>"] if launches else []),
        "",
        'namespace ops __attribute__((visibility("hidden"))) {',
        "",
        "using custom_pypto::ScalarType;",
        "using custom_pypto::Tensor;",
    ]
    groups: dict[str, Op] = {}
    for op in found:
        for name in op.groups:
            _check_group(name, groups.setdefault(name, op), op)
    for name, op in groups.items():
        lines += ["", *_group(name, op)]
    for op in found:
        lines += ["", *_OpStruct(op).lines()]
    return "\n".join([*lines, "", "}  // namespace ops", ""])


def identifier(name: str) -> str:
    """Return the C++ name of an argument, a dim or an output."""
    return f"{name}_" if name in _TAKEN else name


def struct_name(name: str) -> str:
    """Return the name of the struct of an op or a group: of ``foo.bar`` it is foo_bar."""
    name = name.replace(".", "_")
    return f"{name}_" if name in _MEMBERS else identifier(name)


def _check_names(ops: Iterable[Op]) -> None:
    """Check that no two structs have one name."""
    owners: dict[str, str] = {}
    for op in ops:
        for owner in (f"[{op.name}]", *(f"[groups.{name}]" for name in op.groups)):
            name = struct_name(owner[1:-1].removeprefix("groups."))
            if owners.setdefault(name, owner) != owner:
                raise ContractError(
                    f"{FILE_NAME}: {owners[name]} and {owner} would both be the struct ops::{name};"
                    " call one of them otherwise"
                )


def _group(name: str, op: Op) -> Iterator[str]:
    """Return a struct of the arguments that several ops share, and one of their sizes."""
    arguments, dims = _group_arguments(name, op), _group_dims(name, op)
    yield f"// What the ops that include the group '{name}' have in common."
    yield f"struct {struct_name(name)} {{"
    yield "  struct Arguments {"
    yield from (f"    {_type(each)} {identifier(each.name)};" for each in arguments)
    yield "  };"
    yield "  struct Sizes {"
    yield from (f"    {_dim_type(is_span)} {identifier(dim)};" for dim, is_span in dims.items())
    yield "  };"
    yield "  template <class OpArguments>"
    yield "  static Arguments arguments(const OpArguments& a) {"
    yield f"    return {{{', '.join(f'a.{identifier(each.name)}' for each in arguments)}}};"
    yield "  }"
    yield "  template <class OpSizes>"
    yield "  static Sizes sizes(const OpSizes& s) {"
    yield f"    return {{{', '.join(f's.{identifier(dim)}' for dim in dims)}}};"
    yield "  }"
    yield "};"


def _group_arguments(name: str, op: Op) -> list[Argument]:
    return [op.argument(each) for each in op.groups[name]]


def _group_dims(name: str, op: Op) -> dict[str, bool]:
    """Return the dims of a group's tensors, and whether each is variadic."""
    return {
        dim.name: op.dims[dim.name]
        for tensor in op.tensors
        if tensor.name in op.groups[name]
        for shape in tensor.shapes
        for dim in shape
        if dim.name in op.dims
    }


def _check_group(name: str, first: Op, op: Op) -> None:
    """Check that a group is one struct for two ops that include it."""

    def members(of: Op) -> dict[str, str]:
        types = {each.name: _type(each) for each in _group_arguments(name, of)}
        sizes = {dim: _dim_type(is_span) for dim, is_span in _group_dims(name, of).items()}
        return {**types, **{f"the dim {dim}": type_ for dim, type_ in sizes.items()}}

    one, other = members(first), members(op)
    for member in sorted({*one, *other}):
        if one.get(member) != other.get(member):
            raise ContractError(
                f"{FILE_NAME}: [groups.{name}] cannot be one struct: {member!r} is"
                f" {one.get(member, 'missing')} in [{first.name}], {other.get(member, 'missing')}"
                f" in [{op.name}]; make two groups of it"
            )


class _OpStruct:
    """Writes the struct of one op."""

    def __init__(self, op: Op) -> None:
        self._op = op
        self._types = {argument.name: argument.type for argument in op.arguments}
        self._enums = {
            selector: values
            for selector, values in op.selectors.items()
            if self._types.get(selector) == "str" and all(map(_is_enumerator, values))
        }
        # Tensors that have been read into a local View.
        self._views: set[str] = set()

    def lines(self) -> Iterator[str]:
        """Return the lines of the struct."""
        op = self._op
        if op.about:
            # A line that ended in a backslash would go on in the next.
            yield from (f"// {line}".rstrip("\\ ") for line in op.about.splitlines())
        yield f"struct {struct_name(op.name)} {{"
        yield f"  static constexpr const char* name = {_quoted(op.name)};"
        yield f"  static constexpr const char* schema = {_quoted(op.schema.text)};"
        names = ", ".join(_quoted(argument.name) for argument in op.arguments)
        if op.arguments:
            yield f"  static constexpr const char* argument_names[] = {{{names}}};"
        else:
            yield "  static constexpr const char* const* argument_names = nullptr;"
        mask = sum(1 << i for i, argument in enumerate(op.arguments) if argument.is_mutable)
        yield f"  static constexpr uint64_t mutable_arguments = {mask}ULL;"
        yield ""
        yield "  struct Arguments {"
        yield from (f"    {_type(each)} {identifier(each.name)};" for each in op.arguments)
        yield "  };"
        for selector, values in self._enums.items():
            yield f"  enum class {_camel(selector)} {{ {', '.join(values)} }};"
        yield "  // The variants and dims of a call; -1 is a dim that its variant does not have."
        yield "  struct Sizes {"
        yield from (f"    {_camel(each)} {identifier(each)} = {{}};" for each in self._enums)
        for dim, is_span in op.dims.items():
            yield f"    {_dim_type(is_span)} {identifier(dim)}{'' if is_span else ' = -1'};"
        yield "  };"
        yield "  struct Outputs {"
        yield from (f"    {type_} {identifier(name)};" for type_, name in self._returns())
        yield "  };"
        yield from self._check()
        yield from self._limits()
        yield from self._fits()
        yield from self._allocate()
        yield from self._launch()
        yield from self._run()
        yield "};"

    def _returns(self) -> list[tuple[str, str]]:
        names = [output.name for output in self._op.outputs or ()]
        return [
            # A result owns its text.
            (
                _value_type(each.type).replace("std::string_view", "std::string"),
                names[i] if names else each.name or f"result{i}",
            )
            for i, each in enumerate(self._op.schema.returns)
        ]

    # Checks

    def _check(self) -> Iterator[str]:
        yield ""
        yield "  // Throws std::runtime_error, which names op and argument. Reads no values."
        yield "  static Sizes check([[maybe_unused]] const Arguments& a) {"
        yield "    Sizes s;"
        self._views = set()
        yield from self._set_enums()
        for step in checks.steps(self._op):
            yield from self._step(step, "    ")
        yield "    return s;"
        yield "  }"

    def _set_enums(self) -> Iterator[str]:
        for name, values in self._enums.items():
            argument = f"a.{identifier(name)}"
            chain = "".join(f"{argument} == {_quoted(v)} ? {_camel(name)}::{v} : " for v in values)
            yield f"    s.{identifier(name)} = {chain}static_cast<{_camel(name)}>(-1);"

    def _step(self, step: Step, pad: str) -> Iterator[str]:
        if isinstance(step, Check):
            yield from self._declared_views(step, pad)
            yield f"{pad}if (CUSTOM_PYPTO_UNLIKELY(!({self._expression(step.that)}))) {{"
            yield f"{pad}  custom_pypto::fail({self._failure(step.argument, step.says)});"
            yield f"{pad}}}"
        elif isinstance(step, Bind):
            yield from self._declared_views(step, pad)
            dim = f"s.{identifier(step.dim)}"
            have = self._is_bound(step.dim)
            only_if = f"if (!({have})) " if step.may_be_bound else ""
            yield f"{pad}{only_if}{dim} = {self._expression(step.value)};"
        else:
            yield from self._branch(step, pad)

    def _branch(self, branch: Branch, pad: str) -> Iterator[str]:
        yield from self._views_of(self._required(branch), pad)
        word = "if"
        yield from self._viewed([condition for condition, _ in branch.cases], pad)
        for condition, inner in branch.cases:
            outer_views = set(self._views)
            yield f"{pad}{word} ({self._expression(condition)}) {{"
            for step in inner:
                yield from self._step(step, f"{pad}  ")
            self._views = outer_views
            word = "} else if"
        yield f"{pad}}}"

    def _declared_views(self, step: Check | Bind, pad: str) -> Iterator[str]:
        """Read each tensor once, before the first step that looks at it."""
        yield from self._viewed(_nodes(step), pad)

    def _viewed(self, nodes: Iterable[ast.expr], pad: str) -> Iterator[str]:
        yield from self._views_of(looked_at(nodes), pad)

    def _views_of(self, names: Iterable[str], pad: str) -> Iterator[str]:
        for name in sorted(names):
            if name in self._types and name not in self._views:
                self._views.add(name)
                yield f"{pad}const custom_pypto::View {name}_view(a.{identifier(name)});"

    def _required(self, step: Step) -> set[str]:
        """The tensors that a step looks at and that are given in every call."""
        if isinstance(step, Branch):
            inside = (self._required(each) for _, steps in step.cases for each in steps)
            return set().union(*inside)
        return {
            name for name in looked_at(_nodes(step)) if not self._types.get(name, "?").endswith("?")
        }

    def _failure(self, argument: str | None, says: Message) -> str:
        parts = [_quoted(each) if isinstance(each, str) else self._shown(each) for each in says]
        return ", ".join(["name", _quoted(argument) if argument else "nullptr", *parts])

    def _shown(self, node: ast.expr) -> str:
        """The expression of a message: of a tensor, what prints well."""
        match node:
            case ast.Attribute(ast.Name(name), attribute) if name in self._types:
                tensor = f"a.{identifier(name)}"
                tensor = f"(*{tensor})" if self._types[name].endswith("?") else tensor
                shown = {
                    "shape": ".sizes()",
                    "strides": ".strides()",
                    "dtype": ".scalar_type()",
                    "device": ".device()",
                    "rank": ".dim()",
                    "is_contiguous": ".is_contiguous()",
                }
                return tensor + shown[attribute]
            case ast.Name(name) if name in self._types and name not in self._op.dims:
                return f"a.{identifier(name)}"
        return self._expression(node)

    def _limits(self) -> Iterator[str]:
        for name, rules in self._op.npu.limits.items():
            function = f"check_limits_of_{name}" if name else "check_limits"
            yield ""
            yield "  // Throws for what an NPU kernel does not take; `s` is what check() returned."
            yield from self._of_rules(f"void {function}", checks.of_rules(self._op, rules))

    def _of_rules(self, declaration: str, rules: Iterable[Step]) -> Iterator[str]:
        yield (
            f"  static {declaration}([[maybe_unused]] const Arguments& a,"
            " [[maybe_unused]] const Sizes& s) {"
        )
        self._views = set()
        for rule in rules:
            yield from self._step(rule, "    ")
        yield "  }"

    def _fits(self) -> Iterator[str]:
        for name, condition in self._op.npu.fits.items():
            yield ""
            yield "  // `a` and `s` may be a group's, or another op's."
            yield "  template <class AnyArguments, class AnySizes>"
            yield (
                f"  static bool fits_{name}([[maybe_unused]] const AnyArguments& a,"
                " [[maybe_unused]] const AnySizes& s) {"
            )
            self._views = set()
            yield from self._viewed([condition], "    ")
            yield f"    return {self._expression(condition)};"
            yield "  }"

    # Expressions

    def _expression(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(bool(value)):
                return str(value).lower()
            case ast.Constant(str(value)):
                return f"std::string_view({_quoted(value)})"
            case ast.Constant(None):
                return "std::nullopt"
            case ast.Constant(int(value)):
                # An int would overflow where int64_t does not.
                return f"int64_t{{{value}}}"
            case ast.Constant(value):
                return repr(value)
            case ast.Name(name):
                return self._name(name)
            case ast.Attribute(ast.Name(name), attribute):
                return self._attribute(name, attribute)
            case ast.Subscript(ast.Attribute(ast.Name(name)), ast.Slice(upper=ast.expr() as upper)):
                return f"{name}_view.sizes_until({self._expression(upper)})"
            case ast.Subscript(ast.Attribute(ast.Name(name), attribute), index):
                element = {"shape": "size", "strides": "stride"}[attribute]
                return f"{name}_view.{element}({self._expression(index)})"
            case ast.Subscript(of, index):
                return f"{self._expression(of)}[{self._expression(index)}]"
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({self._expression(operand)})"
            case ast.UnaryOp(ast.USub(), operand):
                return f"-({self._expression(operand)})"
            case ast.BinOp(left, ast.FloorDiv() | ast.Mod() as operator, right):
                function = "floor_div" if isinstance(operator, ast.FloorDiv) else "floor_mod"
                numbers = f"{self._expression(left)}, {self._expression(right)}"
                return f"custom_pypto::{function}({numbers})"
            case ast.BinOp(left, operator, right):
                sign = _OPERATORS[type(operator)]
                return f"({self._expression(left)} {sign} {self._expression(right)})"
            case ast.BoolOp(operator, operands):
                sign = " && " if isinstance(operator, ast.And) else " || "
                return "(" + sign.join(map(self._expression, operands)) + ")"
            case ast.Compare(left, operators, rights):
                operands = [left, *rights]
                parts = [
                    self._comparison(a, operator, b)
                    for operator, a, b in zip(operators, operands, rights, strict=False)
                ]
                return parts[0] if len(parts) == 1 else "(" + " && ".join(parts) + ")"
        raise AssertionError(f"{ast.unparse(node)} cannot be said in C++")

    def _name(self, name: str) -> str:
        if name in self._op.dims:
            return f"s.{identifier(name)}"
        if name in self._types:
            is_optional = self._types[name].endswith("?") and self._types[name] != "Tensor?"
            return f"{'*' if is_optional else ''}a.{identifier(name)}"
        return f"ScalarType::{_DTYPES[name]}"

    def _attribute(self, name: str, attribute: str) -> str:
        if name in self._op.dims:
            return f"s.{identifier(name)}.size"
        return (
            f"{name}_view."
            + {
                "rank": "rank",
                "shape": "sizes_until()",
                "strides": "strides()",
                "dtype": "dtype",
                "device": "placement",
                "is_contiguous": "is_contiguous()",
            }[attribute]
        )

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> str:
        if isinstance(operator, ast.In | ast.NotIn):
            found = self._membership(left, right)
            return found if isinstance(operator, ast.In) else f"!{found}"
        if isinstance(operator, ast.Is | ast.IsNot):
            assert isinstance(left, ast.Name)
            negation = "!" if isinstance(operator, ast.Is) else ""
            if left.id in self._op.dims:
                return f"{negation}({self._is_bound(left.id)})"
            return f"{negation}a.{identifier(left.id)}.has_value()"
        is_equality = isinstance(operator, ast.Eq | ast.NotEq)
        match left, right:
            case ast.Name(name), ast.Constant(str(value)) if value in self._enums.get(name, ()):
                sign = _OPERATORS[type(operator)]
                return f"s.{identifier(name)} {sign} {_camel(name)}::{value}"
            case ast.Attribute(_, "dtype"), ast.Name(dtype) if dtype in _DTYPES:
                inside = self._dtypes(left, [dtype])
                return inside if isinstance(operator, ast.Eq) else f"!{inside}"
        sign = _OPERATORS[type(operator)]
        of_dtype = any(
            isinstance(each, ast.Attribute) and each.attr == "dtype" for each in (left, right)
        )
        operands = (self._operand(each, is_equality, of_dtype) for each in (left, right))
        return f" {sign} ".join(operands)

    def _operand(self, node: ast.expr, is_equality: bool, of_dtype: bool) -> str:
        """Return an operand of a comparison. What is None is equal to nothing."""
        text = self._expression(node)
        if isinstance(node, ast.Compare):
            return f"({text})"
        if isinstance(node, ast.Name) and node.id not in self._op.dims:
            if of_dtype and node.id in self._types:
                return f"custom_pypto::detail::dtype_code({text})"
            if is_equality:
                return text.removeprefix("*")
        return text

    def _is_bound(self, dim: str) -> str:
        """The condition that a call has a dim."""
        return f"s.{identifier(dim)}{'.size' * self._op.dims[dim]} >= 0"

    def _membership(self, left: ast.expr, right: ast.expr) -> str:
        assert isinstance(right, ast.Tuple)
        if isinstance(left, ast.Attribute) and left.attr == "dtype":
            return self._dtypes(
                left, [each.id for each in right.elts if isinstance(each, ast.Name)]
            )
        cases = (self._comparison(left, ast.Eq(), each) for each in right.elts)
        return "(" + " || ".join(cases) + ")"

    def _dtypes(self, left: ast.expr, dtypes: Iterable[str]) -> str:
        names = ", ".join(f"ScalarType::{_DTYPES[each]}" for each in dtypes)
        return f"custom_pypto::dtype_is_of<{names}>({self._expression(left)})"

    # Outputs and kernels

    def _allocate(self) -> Iterator[str]:
        op = self._op
        if op.outputs is None:
            return
        yield ""
        yield "  // The outputs, uninitialised. `a` and `s` may be a group's."
        yield "  template <class AnyArguments, class AnySizes>"
        yield (
            "  static Outputs allocate([[maybe_unused]] const AnyArguments& a,"
            " [[maybe_unused]] const AnySizes& s) {"
        )
        self._views = set()
        yield from self._viewed(
            [
                dim.expression
                for output in op.outputs
                for shape in leaves(output.shape)
                for dim in shape
            ],
            "    ",
        )
        made = ", ".join(self._output(each, each.shape) for each in op.outputs)
        yield f"    return {{{made}}};"
        yield "  }"

    def _output(self, output: Output, tree: Tree) -> str:
        if output.like is not None:
            like = f"a.{identifier(output.like)}"
            return f"custom_pypto::empty_output_like(name, {_quoted(output.name)}, {like})"
        if isinstance(tree, Choice):
            made = ""
            for value, each in reversed(list(tree.of.items())):
                one = self._output(output, each)
                condition = self._selected(tree.selector, value)
                made = f"({condition} ? {one} : {made})" if made else one
            return made
        like = f"a.{identifier(output.dtype.same_as or self._device_of())}"
        dtype = ""
        if output.dtype.same_as is None:
            dtype = f", ScalarType::{_DTYPES[output.dtype.allowed[0]]}"
        return (
            f"custom_pypto::empty_output(name, {_quoted(output.name)},"
            f" {self._sizes(tree)}, {like}{dtype})"
        )

    def _selected(self, selector: str, value: Any) -> str:
        tensor = selector.removesuffix(".rank")
        if tensor != selector:
            return f"a.{identifier(tensor)}.dim() == {value}"
        return self._expression(ast.parse(checks.selected(selector, value), mode="eval").body)

    def _sizes(self, shape: Shape) -> str:
        rest = [self._expression(dim.expression) for dim in shape if not dim.is_variadic]
        if shape and shape[0].is_variadic:
            first = self._expression(shape[0].expression)
            if not rest:
                return first
            return f"custom_pypto::joined({first}, {{{', '.join(rest)}}})"
        return f"{{{', '.join(rest)}}}"

    def _device_of(self) -> str:
        return next(each.name for each in self._op.arguments if each.type == "Tensor")

    def _launch(self) -> Iterator[str]:
        calls = self._op.npu.launch
        if not calls:
            return
        symbols = ", ".join(_quoted(call.name) for call in calls)
        yield ""
        yield "  // The kernel for NPUs: the first of these that the machine has."
        yield "  static void launch([[maybe_unused]] const Arguments& a,"
        yield "                     [[maybe_unused]] const Sizes& s,"
        yield "                     [[maybe_unused]] const Outputs& out) {"
        if "" in self._op.npu.limits:
            yield "    check_limits(a, s);"
        if self._op.outputs and not any(each.is_mutable for each in self._op.arguments):
            empty = " && ".join(f"out.{identifier(o.name)}.numel() == 0" for o in self._op.outputs)
            yield f"    if ({empty}) return;"
        yield f"    static const custom_pypto::npu::KernelChoice kernels(name, {{{symbols}}});"
        yield "    const custom_pypto::npu::Kernel& kernel = kernels.get();"
        for call in calls[:-1]:
            yield f"    if (kernel.is({_quoted(call.name)})) {{"
            yield f"      custom_pypto::npu::launch(kernel, {self._passed(call)});"
            yield "      return;"
            yield "    }"
        yield f"    custom_pypto::npu::launch(kernel, {self._passed(calls[-1])});"
        yield "  }"

    def _passed(self, call: Call) -> str:
        return ", ".join(self._value(value) for _, value in call.values)

    def _value(self, value: Value) -> str:
        match value.node:
            case ast.Constant(bool(constant)):
                return str(constant).lower()
            case ast.Constant(int(constant)):
                return (
                    f"custom_pypto::npu::TypedScalar({constant})"
                    if value.is_scalar
                    else f"int64_t{{{constant}}}"
                )
            case ast.Constant(float(constant)):
                return (
                    f"custom_pypto::npu::TypedScalar({constant!r})"
                    if value.is_scalar
                    else repr(constant)
                )
            case ast.Constant(None):
                return "std::nullopt"
            case ast.Constant(constant):
                return _quoted(str(constant))
            case ast.List(elements):
                inner = ", ".join(self._value(Value(each)) for each in elements)
                element = "Tensor" if isinstance(elements[0], ast.Name) else "int64_t"
                return f"std::vector<{element}>{{{inner}}}"
            case ast.Name(name) if name in self._types:
                return f"a.{identifier(name)}"
            case ast.Name(name):
                return f"out.{identifier(name)}"
        raise AssertionError(ast.unparse(value.node))

    def _run(self) -> Iterator[str]:
        op = self._op
        parameters = ", ".join(f"{_type(each)} {identifier(each.name)}" for each in op.arguments)
        given = ", ".join(identifier(each.name) for each in op.arguments)
        returns = self._returns()
        types = ", ".join(type_ for type_, _ in returns)
        result = f"std::tuple<{types}>" if len(returns) > 1 else types or "void"
        call = (
            f"custom_pypto::run_kernel<ops::{struct_name(op.name)}, Kernel>(Arguments{{{given}}})"
        )
        yield ""
        if returns:
            moved = ", ".join(f"std::move(out.{identifier(name)})" for _, name in returns)
            yield f"  static {result} returned(Outputs&& out) {{"
            yield f"    return {moved if len(returns) == 1 else f'{{{moved}}}'};"
            yield "  }"
            call = f"return returned({call})"
        yield "  // What is registered for a dispatch key: checks, allocates, runs the kernel."
        yield "  template <auto Kernel>"
        yield f"  static {result} run({parameters}) {{"
        yield f"    {call};"
        yield "  }"


def _nodes(step: Check | Bind) -> list[ast.expr]:
    """Return the expressions of a step for which tensors are viewed."""
    if isinstance(step, Bind):
        return [step.value]
    # An attribute alone, in a message, is printed without a view.
    return [step.that, *(part for part in step.says if not isinstance(part, str | ast.Attribute))]


def _is_enumerator(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier() and identifier(value) == value


def _camel(name: str) -> str:
    """Return the name of the enumeration of what `name` can be."""
    return identifier("".join(part.capitalize() for part in name.split("_"))) or "Choice"


def _quoted(value: str) -> str:
    """Return a literal of C++; as `??` may begin a trigraph, no two stand together."""
    return json.dumps(value, ensure_ascii=False).replace("??", '?""?').replace("??", '?""?')


def _dim_type(is_span: bool) -> str:
    return "custom_pypto::Span" if is_span else "int64_t"


def _type(argument: Argument) -> str:
    """The type of a kernel's parameter: no ownership where that is possible."""
    type_ = _value_type(argument.type)
    if argument.type in ("Tensor", "Tensor?") or "vector" in type_:
        return f"const {type_}&"
    return type_


def _value_type(type_: str) -> str:
    """The C++ type that a schema type has."""
    if type_.endswith("?"):
        inner = _value_type(type_[:-1])
        return f"std::optional<{inner}>"
    if type_.endswith("[]"):
        inner = _value_type(type_[:-2]).replace("std::string_view", "std::string")
        return f"std::vector<{inner}>"
    return _ELEMENTS[type_]

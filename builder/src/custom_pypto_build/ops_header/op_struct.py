"""The struct of one op in ops.h."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from custom_pypto_contract import checks
from custom_pypto_contract.call import Call, Value
from custom_pypto_contract.contract import OpContract, Output
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.shape import Choice, Shape, Tree, leaves

from .cpp_names import (
    argument_type,
    camel,
    constant,
    dim_type,
    identifier,
    quoted,
    struct_name,
    value_type,
)
from .expressions import Expressions
from .statements import Statements


def returned_values(op: OpContract) -> list[tuple[str, str]]:
    """Return type and name of each result, before `identifier`."""
    names = [output.name for output in op.outputs or ()]
    return [
        # A result owns its text.
        (
            value_type(each.type).replace("std::string_view", "std::string"),
            names[i] if names else each.name or f"result{i}",
        )
        for i, each in enumerate(op.schema.returns)
    ]


class OpStruct:
    """Writes the struct of one op."""

    def __init__(self, op: OpContract) -> None:
        self._op = op
        self._expressions = Expressions(op)

    def lines(self) -> Iterator[str]:
        """Return the lines of the struct."""
        op = self._op
        if op.summary:
            # A line that ends in a backslash goes on in the next line.
            yield from (f"// {line}".rstrip("\\ ") for line in op.summary.splitlines())
        yield f"struct {struct_name(op.name)} {{"
        yield f"  static constexpr const char* name = {quoted(op.name)};"
        yield f"  static constexpr const char* schema = {quoted(op.schema.text)};"
        names = ", ".join(quoted(argument.name) for argument in op.arguments)
        if op.arguments:
            yield f"  static constexpr const char* argument_names[] = {{{names}}};"
        else:
            yield "  static constexpr const char* const* argument_names = nullptr;"
        mask = sum(1 << i for i, argument in enumerate(op.arguments) if argument.is_mutable)
        yield f"  static constexpr uint64_t mutable_arguments = {mask}ULL;"
        yield f"  static constexpr bool is_random = {str(op.random).lower()};"
        yield ""
        yield "  struct Arguments {"
        yield from (f"    {argument_type(each)} {identifier(each.name)};" for each in op.arguments)
        yield "  };"
        for selector in self._expressions.enums:
            yield f"  using {camel(selector)} = ops::{camel(selector)};"
        yield "  // The variants and dims of a call; -1 is a dim that its variant does not have."
        yield "  struct CallShape {"
        for each in self._expressions.enums:
            # As it is qualified, a dim may have the name of the type.
            yield f"    ops::{camel(each)} {identifier(each)} = {{}};"
        for dim in op.dims:
            type_ = dim_type(op, dim)
            yield f"    {type_} {identifier(dim)}{' = -1' if type_ == 'int64_t' else ''};"
        yield "  };"
        yield "  struct Outputs {"
        yield from (f"    {type_} {identifier(name)};" for type_, name in returned_values(self._op))
        yield "  };"
        yield from self._check()
        yield from self._limits()
        yield from self._supports()
        yield from self._allocate()
        yield from _launch(op)
        yield from self._run()
        yield "};"

    def _check(self) -> Iterator[str]:
        yield ""
        yield "  // Throws std::runtime_error, which names op and argument. Reads no values."
        yield "  static CallShape check([[maybe_unused]] const Arguments& a) {"
        yield "    CallShape s;"
        for name, values in self._expressions.enums.items():
            argument = f"a.{identifier(name)}"
            chain = "".join(f"{argument} == {quoted(v)} ? {camel(name)}::{v} : " for v in values)
            yield f"    s.{identifier(name)} = {chain}static_cast<{camel(name)}>(-1);"
        yield from Statements(self._expressions).of(checks.steps(self._op))
        yield "    return s;"
        yield "  }"

    def _limits(self) -> Iterator[str]:
        for name, rules in self._op.npu.limits.items():
            function = f"check_limits_of_{name}" if name else "check_limits"
            yield ""
            yield "  // Throws for what an NPU kernel does not take; `s` is what check() returned."
            yield (
                f"  static void {function}([[maybe_unused]] const Arguments& a,"
                " [[maybe_unused]] const CallShape& s) {"
            )
            yield from Statements(self._expressions).of(checks.rule_steps(self._op, rules))
            yield "  }"

    def _supports(self) -> Iterator[str]:
        for name, condition in self._op.npu.supports.items():
            yield ""
            yield "  // `a` and `s` may be a group's, or another op's."
            yield "  template <class AnyArguments, class AnyCallShape>"
            yield (
                f"  static bool {name}_supports([[maybe_unused]] const AnyArguments& a,"
                " [[maybe_unused]] const AnyCallShape& s) {"
            )
            yield from Statements(self._expressions).infos([condition])
            yield f"    return {self._expressions.text(condition)};"
            yield "  }"

    def _allocate(self) -> Iterator[str]:
        op = self._op
        if op.outputs is None:
            return
        yield ""
        yield "  // The outputs, uninitialised. `a` and `s` may be a group's. Errors name `op`."
        yield "  template <class AnyArguments, class AnyCallShape>"
        yield (
            "  static Outputs allocate([[maybe_unused]] const AnyArguments& a,"
            " [[maybe_unused]] const AnyCallShape& s,"
            " [[maybe_unused]] const char* op = name) {"
        )
        yield from Statements(self._expressions).infos(
            [
                dim.expression
                for output in op.outputs
                for shape in (*leaves(output.shape), (output.length,) if output.length else ())
                for dim in shape
            ]
        )
        made = ", ".join(self._output(each, each.shape) for each in op.outputs)
        yield f"    return {{{made}}};"
        yield "  }"

    def _output(self, output: Output, tree: Tree) -> str:
        name = quoted(output.name)
        if output.like is not None:
            like = f"a.{identifier(output.like)}"
            return f"custom_pypto::empty_output_like(op, {name}, {like})"
        if isinstance(tree, Choice):
            made = ""
            for value, each in reversed(list(tree.trees.items())):
                one = self._output(output, each)
                condition = f"a.{identifier(tree.tensor or '')}.dim() == {value}"
                if tree.tensor is None:
                    condition = self._expressions.text(tree.is_selected(value))
                made = f"({condition} ? {one} : {made})" if made else one
            return made
        of = output.dtype.same_as or self._op.tensor_with_device or ""
        like = f"a.{identifier(of)}{'[0]' if self._op.argument(of).is_tensor_list else ''}"
        dtype = ""
        if output.dtype.same_as is None:
            dtype = f", ScalarType::{DTYPES[output.dtype.allowed[0]]}"
        if output.length is not None:
            name = "output"
        made = f"custom_pypto::empty_output(op, {name}, {self._sizes(tree)}, {like}{dtype})"
        if output.length is None:
            return made
        count = self._expressions.text(output.length.expression)
        return (
            f"custom_pypto::list_of_outputs({count}, {quoted(output.name)},"
            " [&]([[maybe_unused]] int64_t i, custom_pypto::ArgumentName output)"
            f" {{ return {made}; }})"
        )

    def _sizes(self, shape: Shape) -> str:
        rest = [self._expressions.text(dim.expression) for dim in shape if not dim.is_variadic]
        if shape and shape[0].is_variadic:
            first = self._expressions.text(shape[0].expression)
            if not rest:
                return first
            return f"custom_pypto::joined({first}, {{{', '.join(rest)}}})"
        return f"{{{', '.join(rest)}}}"

    def _run(self) -> Iterator[str]:
        op = self._op
        names = [identifier(each.name) for each in op.arguments]
        parameters = ", ".join(
            f"{argument_type(each)} {name}" for each, name in zip(op.arguments, names, strict=True)
        )
        returns = returned_values(op)
        returned = ", ".join(type_ for type_, _ in returns)
        result = f"std::tuple<{returned}>" if len(returns) > 1 else returned or "void"
        given = f"Arguments{{{', '.join(names)}}}"
        call = f"custom_pypto::run_kernel<ops::{struct_name(op.name)}, Kernel>({given})"
        yield ""
        if returns:
            moved = ", ".join(f"std::move(out.{identifier(name)})" for _, name in returns)
            yield f"  static {result} returned(Outputs&& out) {{"
            yield f"    return {moved if len(returns) == 1 else f'{{{moved}}}'};"
            yield "  }"
            # Qualified, because an argument may have that name.
            call = f"return ops::{struct_name(op.name)}::returned({call})"
        yield "  // Registered for a dispatch key: checks, allocates, runs the kernel."
        yield "  template <auto Kernel>"
        yield f"  static {result} run({parameters}) {{"
        yield f"    {call};"
        yield "  }"


def _launch(op: OpContract) -> Iterator[str]:
    """Return the lines of the NPU kernel; none without launch lines."""
    calls = op.npu.launch
    if not calls:
        return
    symbols = ", ".join(quoted(call.name) for call in calls)
    yield ""
    yield "  // The kernel for NPUs is the first of these that the machine has."
    yield f"  static inline const custom_pypto::npu::KernelChoice kernels{{name, {{{symbols}}}}};"
    yield "  static void launch([[maybe_unused]] const Arguments& a,"
    yield "                     [[maybe_unused]] const CallShape& s,"
    yield "                     [[maybe_unused]] const Outputs& out) {"
    if "" in op.npu.limits:
        yield "    check_limits(a, s);"
    if op.outputs and not any(each.is_mutable for each in op.arguments):
        empty = " && ".join(
            f"custom_pypto::has_no_elements(out.{identifier(o.name)})" for o in op.outputs
        )
        yield f"    if ({empty}) return;"
    yield "    const custom_pypto::npu::Kernel& kernel = kernels.get();"
    for call in calls[:-1]:
        yield f"    if (kernel.is({quoted(call.name)})) {{"
        yield from (f"      {line}" for line in _launch_one(op, call))
        yield "      return;"
        yield "    }"
    yield from (f"    {line}" for line in _launch_one(op, calls[-1]))
    yield "  }"


def _launch_one(op: OpContract, call: Call) -> Iterator[str]:
    if call.name in op.npu.limits:
        yield f"check_limits_of_{call.name}(a, s);"
    passed = ", ".join(_value(op, value) for _, value in call.values)
    yield f"CUSTOM_PYPTO_LAUNCH(kernel, {call.name}, {passed});"


def _value(op: OpContract, value: Value) -> str:
    match value.node:
        case ast.Constant(number):
            written = constant(number)
            return f"custom_pypto::npu::TypedScalar({written})" if value.is_scalar else written
        case ast.List(elements):
            inner = ", ".join(_value(op, Value(each)) for each in elements)
            element = "Tensor" if isinstance(elements[0], ast.Name) else "int64_t"
            return f"std::vector<{element}>{{{inner}}}"
        case ast.Name(name):
            is_argument = any(each.name == name for each in op.arguments)
            return f"{'a' if is_argument else 'out'}.{identifier(name)}"
    raise AssertionError(ast.unparse(value.node))

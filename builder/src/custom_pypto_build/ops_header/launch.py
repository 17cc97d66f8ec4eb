"""Makes the NPU kernel of an op from its launch lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from custom_pypto_contract.call import Call, Value
from custom_pypto_contract.contract import OpContract

from .cpp_names import constant, identifier, quoted


def launch(op: OpContract) -> Iterator[str]:
    """Return the lines of the NPU kernel; none without launch lines."""
    calls = op.npu.launch
    if not calls:
        return
    symbols = ", ".join(quoted(call.name) for call in calls)
    yield ""
    yield "  // The kernel for NPUs is the first of these that the machine has."
    yield f"  static inline const custom_pypto::npu::KernelChoice kernels{{name, {{{symbols}}}}};"
    yield "  static void launch([[maybe_unused]] const Arguments& a,"
    yield "                     [[maybe_unused]] const Sizes& s,"
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
        yield from (f"      {line}" for line in _launch(op, call))
        yield "      return;"
        yield "    }"
    yield from (f"    {line}" for line in _launch(op, calls[-1]))
    yield "  }"


def _launch(op: OpContract, call: Call) -> Iterator[str]:
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

"""The kernels of new ops: C++ for CPUs with its registration, or Python for every device."""

from __future__ import annotations

from custom_pypto_contract.dispatch_keys import NPU

from custom_pypto_build.ops_header.cpp_names import identifier, struct_name
from custom_pypto_build.ops_module import STAR_IMPORT, parameters, returned

from .new_plugin import NewOp, NewPlugin

_CPP = """\
// The CPU kernels of {plugin}, and their registration.
{begin}

{functions}

}}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {{
{definitions}
}}
"""
_DEFINITION = '  plugin.def<ops::{op}>().impl<&{op}_cpu>("CPU"){npu};'
_BEGIN = """\
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <cstdint>
#include <type_traits>

#include "ops.h"

namespace {{

using custom_pypto::BFloat16;
using custom_pypto::Half;

// The least number of elements that is worth a thread.
constexpr int64_t kGrain = 16384;"""
_FUNCTION = """\
// ops.toml has checked the arguments, and the outputs are allocated.
void {op}_cpu(
    const ops::{op}::Arguments& a, const ops::{op}::CallShape&, const ops::{op}::Outputs& out) {{
  const auto dense = custom_pypto::to_contiguous(a.{first});
  const auto compute = [&](auto tag) {{
    using T = typename decltype(tag)::type;
    // Numbers of 16 bits are computed in float, and rounded once.
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* from = dense.const_data_ptr<T>();
{results}
    custom_pypto::parallel_for(0, dense.numel(), kGrain, [&](int64_t begin, int64_t end) {{
      for (int64_t i = begin; i < end; ++i) {{
        const Wide product = static_cast<Wide>(from[i]) * static_cast<Wide>(from[i]);
{stores}
      }}
    }});
  }};
  custom_pypto::visit_dtype<Half, BFloat16, float, double>(
      ops::{op}::name, "{first_name}", dense.scalar_type(), compute);
}}"""

_ISA_BEGIN = """\
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/elementwise.h>

#include "cpu/{plugin}_kernels.h"
#include "ops.h"

namespace {{"""
_ISA_FUNCTION = """\
// ops.toml has checked the arguments, and the outputs are allocated.
void {op}_cpu(
    const ops::{op}::Arguments& a, const ops::{op}::CallShape&, const ops::{op}::Outputs& out) {{
  const int index = custom_pypto::float_index(a.{first}.scalar_type());
  auto* loop = {plugin}_loops::kernels().{op}[index];
{calls}
}}"""
_ISA_HEADER = """\
// The CPU kernels of {plugin}: a table of functions, compiled for each instruction set.
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>

namespace {plugin}_loops {{

// Computes `count` numbers. A lambda around a loop can pass it further arguments.
using Loop = void(const void* from, void* to, int64_t count);

// The loops of each op for fp32, fp16 and bf16, the order of Element.
struct Kernels {{
{members}
}};

CUSTOM_PYPTO_KERNELS(Kernels, kernels)

}}  // namespace {plugin}_loops
"""
_ISA_MEMBER = "  Loop* {op}[custom_pypto::kFloatElements];"
_ISA_KERNELS = """\
// The loops of {plugin}, and their table for one instruction set.
#include <custom_pypto_blocks/cpu/vectors.h>

#include "{plugin}_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {{
namespace {{

// X is a vector of fp32, or float.
template <class X>
X square(X x) {{
  return x * x;
}}

{loops}

}}  // namespace
}}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr {plugin}_loops::Kernels {plugin}_loops::CUSTOM_PYPTO_OF_ISA(kernels) = {{
{rows}
}};
"""
_ISA_LOOP = """\
template <class T>
void {op}_loop(const void* from, void* to, int64_t count) {{
  const T* x = static_cast<const T*>(from);
  T* result = static_cast<T*>(to);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(result + i, square(load(x + i)));
  for (; i < count; ++i) result[i] = from_float<T>(square(to_float(x[i])));
}}"""
_ISA_ROW = "    {{&isa::{op}_loop<float>, &isa::{op}_loop<isa::Fp16>, &isa::{op}_loop<isa::Bf16>}},"

_PYTHON = '''\
"""The kernels of {plugin}."""

from __future__ import annotations

from collections.abc import {collections}
from typing import Any

{imports}from custom_pypto_plugin import hookimpl
from torch import Tensor

{star_import}

@hookimpl
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """The kernels for every device."""
    return {{
{entries}
    }}


{functions}
'''
_PYTHON_ENTRY = '        "{name}": {{"CompositeExplicitAutograd": _{op}}},'
_PYTHON_FUNCTION = """\
def _{op}(
    {parameters},
) -> {returned}:
    return {squares}"""


def sources(made: NewPlugin) -> dict[str, str]:
    """Return the text of each file with kernels, by its path in the plugin's folder."""
    words = [_words(made, each) for each in made.ops]
    begin, function = (_ISA_BEGIN, _ISA_FUNCTION) if made.has_isas else (_BEGIN, _FUNCTION)
    if made.is_python:
        files, function = {made.source: _PYTHON}, _PYTHON_FUNCTION
    else:
        files = {f"csrc/{made.name}.cpp": _CPP}
    if made.has_isas:
        files |= {f"csrc/cpu/{made.name}_kernels.h": _ISA_HEADER, made.source: _ISA_KERNELS}

    def each_op(template: str, between: str = "\n") -> str:
        return between.join(template.format(**each) for each in words)

    annotations = " ".join(each["parameters"] for each in words)
    parts = {
        "plugin": made.name,
        "begin": begin.format(plugin=made.name),
        "functions": each_op(function, "\n\n\n" if made.is_python else "\n\n"),
        "definitions": each_op(_DEFINITION),
        "members": each_op(_ISA_MEMBER),
        "loops": each_op(_ISA_LOOP, "\n\n"),
        "rows": each_op(_ISA_ROW),
        "entries": each_op(_PYTHON_ENTRY),
        "collections": "Callable, Mapping" + (", Sequence" if "Sequence[" in annotations else ""),
        "imports": "import torch\n" if "torch." in annotations else "",
        "star_import": STAR_IMPORT,
    }
    return {path: template.format(**parts) for path, template in files.items()}


def _words(made: NewPlugin, op: NewOp) -> dict[str, str]:
    """Return what the templates say of an op."""
    struct = struct_name(op.schema.name)
    first, outputs = identifier(op.first), [identifier(each) for each in op.outputs]
    pointers = {f"to{index or ''}": output for index, output in enumerate(outputs)}
    # A returned tensor has the strides that ops.toml gives it.
    square = f"({op.first} * {op.first}).contiguous()"
    return {
        "plugin": made.name,
        "name": op.schema.name,
        "op": struct,
        "first": first,
        "first_name": op.first,
        "results": "\n".join(
            f"    T* {to} = out.{of}.mutable_data_ptr<T>();" for to, of in pointers.items()
        ),
        "stores": "\n".join(f"        {to}[i] = static_cast<T>(product);" for to in pointers),
        "calls": "\n".join(
            f"  custom_pypto::elementwise(loop, out.{of}, a.{first});" for of in outputs
        ),
        "npu": f'.impl<&ops::{struct}::launch>("{NPU}")' if made.has_npu else "",
        "parameters": ",\n    ".join(parameters(op.schema)),
        "returned": returned(op.schema),
        "squares": ", ".join([square] * len(outputs)),
    }

"""The kernel of a new op: C++ for CPUs with its registration, or Python for every device."""

from __future__ import annotations

from custom_pypto_contract.dispatch_keys import NPU

from custom_pypto_build.ops_header.cpp_names import identifier
from custom_pypto_build.ops_module import STAR_IMPORT, parameters, returned

from .new_plugin import DTYPES, NewPlugin

_TYPES = {"float16": "Half", "bfloat16": "BFloat16", "float32": "float", "float64": "double"}

_CPP = """\
// The CPU kernel of {op}, and its registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <cstdint>
#include <type_traits>

#include "ops.h"

namespace {{

using custom_pypto::BFloat16;
using custom_pypto::Half;
using Op = ops::{struct};

// The least number of elements that is worth a thread.
constexpr int64_t kGrain = 16384;

// T is the dtype. ops.toml has checked the arguments, and the outputs are allocated.
template <typename T>
void compute(const Op::Arguments& a, const Op::Outputs& out) {{
  // Numbers of 16 bits are computed in float, and rounded once.
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto dense = custom_pypto::to_contiguous(a.{first});
  const T* from = dense.const_data_ptr<T>();
{results}
  custom_pypto::parallel_for(0, a.{first}.numel(), kGrain, [&](int64_t begin, int64_t end) {{
    for (int64_t i = begin; i < end; ++i) {{
      const Wide product = static_cast<Wide>(from[i]) * static_cast<Wide>(from[i]);
{stores}
    }}
  }});
}}

void on_cpu(const Op::Arguments& a, const Op::CallShape&, const Op::Outputs& out) {{
  custom_pypto::visit_dtype<{types}>(
      Op::name, "{first_name}", a.{first}.scalar_type(),
      [&](auto tag) {{ compute<typename decltype(tag)::type>(a, out); }});
}}

}}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {{
  plugin.def<Op>().impl<&on_cpu>("CPU"){npu};
}}
"""


def cpp_text(made: NewPlugin) -> str:
    """Return the source."""
    pointers = [f"to{index or ''}" for index in range(len(made.outputs))]
    outputs = zip(pointers, map(identifier, made.outputs), strict=True)
    return _CPP.format(
        op=made.schema.name,
        struct=made.op,
        first=identifier(made.first),
        first_name=made.first,
        types=", ".join(_TYPES[each] for each in DTYPES),
        results="\n".join(f"  T* {to} = out.{of}.mutable_data_ptr<T>();" for to, of in outputs),
        stores="\n".join(f"      {to}[i] = static_cast<T>(product);" for to in pointers),
        npu=f'.impl<&Op::launch>("{NPU}")' if made.has_npu else "",
    )


_PYTHON = '''\
"""torch.ops.custom_pypto.{op}: its kernel."""

from __future__ import annotations

from collections.abc import {collections}
from typing import Any

{imports}from custom_pypto_plugin import hookimpl
from torch import Tensor

{star_import}

@hookimpl
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """The kernel for every device."""
    return {{"{op}": {{"CompositeExplicitAutograd": _{name}}}}}


def _{name}(
    {parameters},
) -> {returned}:
    return {results}
'''


def python_text(made: NewPlugin) -> str:
    """Return ``__init__.py``."""
    written = ", ".join(parameters(made.schema))
    # A returned tensor has the strides that ops.toml gives it.
    square = f"({made.first} * {made.first}).contiguous()"
    return _PYTHON.format(
        op=made.schema.name,
        name=made.op,
        collections="Callable, Mapping" + (", Sequence" if "Sequence[" in written else ""),
        imports="import torch\n" if "torch." in written else "",
        star_import=STAR_IMPORT,
        parameters=",\n    ".join(parameters(made.schema)),
        returned=returned(made.schema),
        results=", ".join([square] * len(made.outputs)),
    )

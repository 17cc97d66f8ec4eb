"""The kernel of a new op: C++ for CPUs with its registration, or Python for every device."""

from __future__ import annotations

from collections.abc import Iterator

from custom_pypto_build.ops_header.cpp_names import identifier
from custom_pypto_build.ops_module import STAR_IMPORT, parameters, returned

from .new_plugin import DTYPES, NewPlugin, free_name

_TYPES = {"float16": "Half", "bfloat16": "BFloat16", "float32": "float", "float64": "double"}
# The names in `_CPP` that a name of the schema would hide.
_TAKEN = frozenset(
    """
    BFloat16 Half Op T Wide a begin compute end i kGrain on_cpu out product
    """.split()  # noqa: SIM905
)

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
  const auto {dense} = custom_pypto::to_contiguous(a.{first});
  const T* {data} = {dense}.const_data_ptr<T>();
{results}
  custom_pypto::parallel_for(0, a.{first}.numel(), kGrain, [&](int64_t begin, int64_t end) {{
    for (int64_t i = begin; i < end; ++i) {{
      const Wide product = static_cast<Wide>({data}[i]) * static_cast<Wide>({data}[i]);
{stores}
    }}
  }});
}}

void on_cpu(const Op::Arguments& a, const Op::Sizes&, const Op::Outputs& out) {{
  custom_pypto::visit_dtype<{types}>(
      Op::name, "{first_name}", a.{first}.scalar_type(),
      [&](auto tag) {{ compute<typename decltype(tag)::type>(a, out); }});
}}

}}  // namespace

{registration}
"""


def cpp_text(made: NewPlugin) -> str:
    """Return the source."""
    taken = set(_TAKEN)
    names: list[str] = []
    for name in (f"dense_{made.first}", made.first, *made.outputs):
        names.append(free_name(identifier(name), taken))
        taken.add(names[-1])
    dense, data, *results = names
    members = zip(results, map(identifier, made.outputs), strict=True)
    pointers = (f"  T* {each} = out.{of}.mutable_data_ptr<T>();" for each, of in members)
    return _CPP.format(
        op=made.schema.name,
        struct=made.op,
        first=identifier(made.first),
        first_name=made.first,
        types=", ".join(_TYPES[each] for each in DTYPES),
        dense=dense,
        data=data,
        results="\n".join(pointers),
        stores="\n".join(f"      {each}[i] = static_cast<T>(product);" for each in results),
        registration=_registration(made),
    )


def _registration(made: NewPlugin) -> str:
    npu = '.impl<&Op::launch>("PrivateUse1")' if made.has_npu else ""
    body = f'plugin.def<Op>().impl<&on_cpu>("CPU"){npu};'
    line = f"CUSTOM_PYPTO_PLUGIN(plugin) {{ {body} }}"
    return line if len(line) <= 100 else f"CUSTOM_PYPTO_PLUGIN(plugin) {{\n  {body}\n}}"


_PYTHON = '''\
"""torch.ops.custom_pypto.{op}: its kernel."""

from __future__ import annotations

from collections.abc import {collections}
from typing import Any

import torch
from custom_pypto_plugin import hookimpl
from torch import Tensor

{star_import}

@hookimpl
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """The kernel for every device."""
    return {{"{op}": {{"CompositeExplicitAutograd": _{name}}}}}


def _{name}(
    {parameters},
) -> {returned}:
    {body}
'''


def python_text(made: NewPlugin) -> str:
    """Return ``__init__.py``."""
    has_list = any("[]" in each.type for each in made.schema.arguments)
    return _PYTHON.format(
        op=made.schema.name,
        name=made.op,
        collections="Callable, Mapping" + ", Sequence" * has_list,
        star_import=STAR_IMPORT,
        parameters=",\n    ".join(parameters(made.schema)),
        returned=returned(made.schema),
        body="\n    ".join(_python_body(made)),
    )


def _python_body(made: NewPlugin) -> Iterator[str]:
    taken = [each.name for each in made.schema.arguments]
    wide = free_name("wide", taken)
    result = free_name("result", [*taken, wide])
    yield f"{wide} = torch.promote_types({made.first}.dtype, torch.float32)"
    # A returned tensor has the strides that ops.toml gives it.
    square = f"({made.first}.to({wide}) * {made.first}.to({wide}))"
    yield f"{result} = {square}.to({made.first}.dtype).contiguous()"
    yield f"return {', '.join([result, *[f'{result}.clone()'] * (len(made.outputs) - 1)])}"

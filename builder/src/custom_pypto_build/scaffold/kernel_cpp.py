"""The C++ of a new op: its kernel for CPUs, and the registration."""

from __future__ import annotations

from collections.abc import Iterator

from custom_pypto_build.ops_header.cpp_names import identifier

from .new_plugin import DTYPES, NewPlugin, free_name

_TYPES = {"float16": "Half", "bfloat16": "BFloat16", "float32": "float", "float64": "double"}
# The names in `_SOURCE` that a name of the schema would hide.
_TAKEN = frozenset(
    """
    BFloat16 Half Op T Wide a begin compute end i kGrain on_cpu out product
    """.split()  # noqa: SIM905
)

_SOURCE = """\
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
{pointers}
  custom_pypto::parallel_for(0, a.{first}.numel(), kGrain, [&](int64_t begin, int64_t end) {{
    for (int64_t i = begin; i < end; ++i) {{
{product}
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


def text(made: NewPlugin) -> str:
    """Return the source."""
    taken = set(_TAKEN)
    data: dict[str, str] = {}
    for name in (*(each.name for each in made.factors), *made.outputs):
        data[name] = free_name(identifier(name), taken)
        taken.add(data[name])
    return _SOURCE.format(
        op=made.schema.name,
        struct=made.op,
        first=identifier(made.first),
        first_name=made.first,
        types=", ".join(_TYPES[each] for each in DTYPES),
        pointers="\n".join(f"  {each}" for each in _pointers(made, data, taken)),
        product="\n".join(f"      {each}" for each in _product(made, data)),
        registration=_registration(made),
    )


def _pointers(made: NewPlugin, data: dict[str, str], taken: set[str]) -> Iterator[str]:
    for each in made.factors:
        pointer, member = data[each.name], identifier(each.name)
        dense = free_name(f"dense_{each.name}", taken)
        yield f"const auto {dense} = custom_pypto::to_contiguous(a.{member});"
        yield f"const T* {pointer} = {dense}.const_data_ptr<T>();"
    for name in made.outputs:
        yield f"T* {data[name]} = out.{identifier(name)}.mutable_data_ptr<T>();"


def _product(made: NewPlugin, data: dict[str, str]) -> Iterator[str]:
    head, *rest = (f"static_cast<Wide>({data[name]}[i])" for name in made.product)
    if len(rest) == 1:
        yield f"const Wide product = {head} * {rest[0]};"
    else:
        yield f"Wide product = {head};"
        yield from (f"product *= {each};" for each in rest)
    for name in made.outputs:
        yield f"{data[name]}[i] = static_cast<T>(product);"


def _registration(made: NewPlugin) -> str:
    npu = '.impl<&Op::launch>("PrivateUse1")' if made.has_npu else ""
    body = f'plugin.def<Op>().impl<&on_cpu>("CPU"){npu};'
    line = f"CUSTOM_PYPTO_PLUGIN(plugin) {{ {body} }}"
    return line if len(line) <= 100 else f"CUSTOM_PYPTO_PLUGIN(plugin) {{\n  {body}\n}}"

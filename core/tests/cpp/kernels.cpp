// Kernels that use messages, dtypes, allocation and the parallel loop.
#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "kernel.h"

namespace cp = custom_pypto;
using cp::ScalarType;
using cp::Tensor;

namespace {

void fail(const ops::headers_fail::Arguments& a, const ops::headers_fail::CallShape&,
          const ops::headers_fail::Outputs&) {
  const char* op = ops::headers_fail::name;
  if (a.name == "argument") cp::fail(op, "self", "odd: ", a.self, ' ', a.text, ' ', true);
  if (a.name == "op") cp::fail(op, nullptr, "has no ", a.self->sizes());
  if (a.name == "check") cp::check(a.text.empty(), op, "text", "must be empty, got ", a.text);
  if (a.name == "visit") {
    cp::visit_dtype<cp::Half, cp::BFloat16>(op, "self", a.self->scalar_type(), [](auto) {});
  }
  if (a.name == "memory") throw std::bad_alloc();
  if (a.name == "vector") throw std::length_error("vector");
  if (a.name == "function") cp::empty({4, int64_t{1} << 62, 4}, *a.self);
  if (a.name == "torch") torch::stable::transpose(*a.self, 0, 7);
}

KERNEL(element_size, headers_element_size) {
  const char* op = ops::headers_element_size::name;
  const ScalarType dtype = a.self.scalar_type();
  return {cp::visit_dtype<float, double, cp::Half, cp::BFloat16, int8_t, uint8_t, int16_t, int32_t,
                          int64_t, bool>(op, "self", dtype, [&](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    cp::check(cp::dtype_of<T> == dtype, op, "self", "differs");
    cp::check(cp::dtype_size(dtype) == sizeof(T), op, "self", "has elements of another size");
    return sizeof(T);
  })};
}

KERNEL(make, headers_make) { return {cp::empty(a.sizes, a.dtype, a.device)}; }

KERNEL(make_like, headers_make_like) {
  const int64_t rows = a.like.numel();
  return {{cp::empty_like_contiguous(a.like), cp::empty({rows, 2}, a.like),
           cp::empty({rows, 2}, ScalarType::Int, a.like)}};
}

// How often nested loops visit each pair of indices.
KERNEL(visits, headers_visits) {
  const Tensor counts = cp::empty({a.outer, a.inner}, ScalarType::Int,
                                  cp::Device(torch::headeronly::DeviceType::CPU));
  auto* data = static_cast<int32_t*>(counts.mutable_data_ptr());
  std::fill(data, data + a.outer * a.inner, 0);
  cp::parallel_for(0, a.outer, a.grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cp::parallel_for(0, a.inner, a.grain, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) ++data[row * a.inner + i];
      });
    }
  });
  return {counts};
}

// std::out_of_range, so that a lost type shows: in Python it is an IndexError.
void throw_in_loop(const ops::headers_throw_in_loop::Arguments& a,
                   const ops::headers_throw_in_loop::CallShape&,
                   const ops::headers_throw_in_loop::Outputs&) {
  cp::parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) {
    if (a.at < begin || a.at >= end) return;
    cp::parallel_for(0, 4, 1, [&](int64_t, int64_t) {
      throw std::out_of_range("headers_throw_in_loop: row " + std::to_string(a.at));
    });
  });
}

KERNEL(threads, headers_threads) { return {cp::num_threads()}; }

KERNEL(is_backend_key, headers_is_backend_key) { return {cp::detail::is_backend_key(a.key)}; }

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::headers_fail>().impl<&fail>("CompositeExplicitAutograd");
  plugin.def<ops::headers_element_size>().impl<&element_size>("CPU");
  plugin.def<ops::headers_make>().impl<&make>("CompositeExplicitAutograd");
  plugin.def<ops::headers_make_like>().impl<&make_like>("CompositeExplicitAutograd");
  plugin.def<ops::headers_visits>().impl<&visits>("CompositeExplicitAutograd");
  plugin.def<ops::headers_throw_in_loop>().impl<&throw_in_loop>("CompositeExplicitAutograd");
  plugin.def<ops::headers_is_backend_key>().impl<&is_backend_key>("CompositeExplicitAutograd");
  plugin.def<ops::headers_threads>().impl<&threads>("CompositeExplicitAutograd");
}

// Steps of the ops by torch's own ops, beside the steps in blocks. Each queues its work.
#pragma once

#include <custom_pypto_blocks/npu/tensor_ops.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention::npu {

using namespace custom_pypto::npu;

inline Tensor logarithm(const Tensor& a) { return call_op<Tensor>("aten::log", "", a); }

inline Tensor batched_product(const Tensor& a, const Tensor& b) {
  return call_op<Tensor>("aten::bmm", "", a, b);
}

// Sorts each row, its largest numbers first.
inline Tensor sort_descending(const Tensor& tensor) {
  return std::get<0>(call_op<std::tuple<Tensor, Tensor>>("aten::sort", "", tensor, -1, true));
}

// [*tokens, ..] from rows [tokens, ..], with the leading dimensions of x [*tokens, H]; contiguous.
inline Tensor unflatten_tokens(const Tensor& x, const Tensor& rows) {
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
  sizes.insert(sizes.end(), rows.sizes().begin() + 1, rows.sizes().end());
  return to_contiguous(reshape(rows, sizes));
}

}  // namespace custom_pypto_sparse_attention::npu

// The products of the new tokens.
#include "rows.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/linear.h>

#include <cstring>

namespace custom_pypto_compressor {
namespace {

using namespace custom_pypto;

// [tokens, width] = rows [tokens, H] @ weight [width, H]^T, in fp32 or fp64.
Tensor product(const Tensor& rows, const Tensor& weight_of_any_strides) {
  if (rows.scalar_type() == ScalarType::Double) {
    return multiply_fp64(rows, torch::stable::transpose(weight_of_any_strides, 0, 1));
  }
  const Tensor weight = to_contiguous(weight_of_any_strides);
  const Tensor out = empty({rows.size(0), weight.size(0)}, ScalarType::Float, rows);
  cpu::LinearTask task = {};
  task.rows = rows.const_data_ptr();
  task.count = rows.size(0);
  task.depth = weight.size(1);
  task.weight = weight.const_data_ptr();
  task.last = task.out_stride = weight.size(0);
  task.out = out.mutable_data_ptr();
  multiply_linear(kernels().linear[float_index(rows.scalar_type())], task);
  return out;
}

template <class Real>
void add_bias(const Tensor& scores, const Tensor& ape, const Batch& batch, const Sizes& sizes) {
  const std::vector<Real> biases = read_floats<Real>(ape);
  const int64_t width = sizes.width();
  auto* const to = static_cast<Real*>(scores.mutable_data_ptr());
  for (const Sequence& sequence : batch.sequences) {
    parallel_for(0, sequence.count, kUnitNumbers / width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Real* const bias = biases.data() + (sequence.start + i) % sizes.ratio * width;
        Real* const row = to + (sequence.place + i) * width;
        for (int64_t c = 0; c < width; ++c) row[c] += bias[c];
      }
    });
  }
}

}  // namespace

Tensor multiply_fp64(const Tensor& a_of_any_strides, const Tensor& b_of_any_strides) {
  const Tensor a = to_contiguous(a_of_any_strides);
  const Tensor b = to_contiguous(b_of_any_strides);
  const int64_t depth = b.size(0);
  const int64_t columns = b.size(1);
  Tensor out = empty({a.size(0), columns}, a);
  out = torch::stable::zero_(out);
  const auto* left = static_cast<const double*>(a.const_data_ptr());
  const auto* right = static_cast<const double*>(b.const_data_ptr());
  auto* sums = static_cast<double*>(out.mutable_data_ptr());
  parallel_for(0, a.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t c = 0; c < columns; ++c) {
          sums[row * columns + c] += left[row * depth + k] * right[k * columns + c];
        }
      }
    }
  });
  return out;
}

Tensor used_rows(const Tensor& x, const Batch& batch) {
  const int64_t hidden = x.size(x.dim() - 1);
  const Tensor rows = torch::stable::reshape(to_contiguous(x), {-1, hidden});
  if (rows.size(0) == batch.tokens) return rows;
  const Tensor out = empty({batch.tokens, hidden}, x);
  const int64_t bytes = hidden * static_cast<int64_t>(x.element_size());
  const auto* from = static_cast<const char*>(rows.const_data_ptr());
  auto* to = static_cast<char*>(out.mutable_data_ptr());
  for (const Sequence& sequence : batch.sequences) {
    if (sequence.count == 0) continue;
    std::memcpy(to + sequence.place * bytes, from + sequence.row * bytes,
                static_cast<std::size_t>(sequence.count * bytes));
  }
  return out;
}

Products project_tokens(const Tensor& x, const Tensor& wkv, const Tensor& wgate, const Tensor& ape,
                        const Batch& batch, const Sizes& sizes) {
  const Tensor rows = used_rows(x, batch);
  const Products products{product(rows, wkv), product(rows, wgate)};
  const auto add = x.scalar_type() == ScalarType::Double ? &add_bias<double> : &add_bias<float>;
  add(products.scores, ape, batch, sizes);
  return products;
}

}  // namespace custom_pypto_compressor

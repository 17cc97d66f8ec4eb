// The products of the new tokens.
#include "rows.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/projection.h>

namespace custom_pypto_compressor {
namespace {

using custom_pypto::ScalarType;

// [tokens, width] = rows [.., H] @ weight [width, H]^T, in fp32.
Tensor product(const Tensor& rows, int64_t tokens, const Tensor& weight) {
  const Tensor out = custom_pypto::empty({tokens, weight.size(0)}, ScalarType::Float, rows);
  const auto element = static_cast<int>(custom_pypto::element_of(rows.scalar_type()));
  custom_pypto::project(
      kernels().matmul[element], {rows.const_data_ptr(), tokens, weight.size(1)},
      custom_pypto::matrix_of(weight.const_data_ptr(), weight.size(1), weight.size(0),
                              weight.stride(1), weight.stride(0)),
      {out.mutable_data_ptr(), tokens, weight.size(0)}, true);
  return out;
}

}  // namespace

Tensor used_rows(const Tensor& x, const Batch& batch) {
  const Tensor source = custom_pypto::to_contiguous(x);
  const int64_t width = x.size(x.dim() - 1);
  if (batch.tokens() * width == x.numel()) return source;
  const Tensor out = custom_pypto::empty({batch.tokens(), width}, x);
  const int64_t bytes = width * static_cast<int64_t>(x.element_size());
  const auto* from = static_cast<const char*>(source.const_data_ptr());
  auto* to = static_cast<char*>(out.mutable_data_ptr());
  for (const Sequence& sequence : batch.sequences()) {
    if (sequence.count == 0 || bytes == 0) continue;
    std::memcpy(to + sequence.place * bytes, from + sequence.row * bytes,
                static_cast<std::size_t>(sequence.count * bytes));
  }
  return out;
}

Products project_tokens(const Tensor& x, const Tensor& wkv, const Tensor& wgate, const Tensor& ape,
                        const Batch& batch, const Sizes& sizes) {
  const Tensor rows = used_rows(x, batch);
  const Products products{product(rows, batch.tokens(), wkv), product(rows, batch.tokens(), wgate)};
  const std::vector<float> biases = custom_pypto::read_floats(ape);
  auto* scores = static_cast<float*>(products.scores.mutable_data_ptr());
  const int64_t width = sizes.width();
  for (const Sequence& sequence : batch.sequences()) {
    custom_pypto::parallel_for(
        0, sequence.count, std::max<int64_t>(1, kUnitNumbers / width),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            kernels().add(scores + (sequence.place + i) * width,
                          biases.data() + (sequence.start + i) % sizes.ratio * width, width);
          }
        });
  }
  return products;
}

}  // namespace custom_pypto_compressor

// The products of the new tokens.
#include "rows.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/scratch.h>

namespace custom_pypto_compressor {
namespace {

using custom_pypto::ScalarType;

// The fewest multiplications that are worth another thread.
constexpr int64_t kUnitWork = 1 << 16;

// So many bytes of rows stay in the L2 cache while weights are read.
constexpr int64_t kBytesOfRows = 768 << 10;
// Weights of a unit of work: several tiles.
constexpr int64_t kUnitWeights = 16;

// [tokens, width] = rows [.., H] @ weight [width, H]^T, in fp32.
Tensor product(const Tensor& rows, int64_t tokens, const Tensor& weight_of_any_strides) {
  const Tensor weight = custom_pypto::to_contiguous(weight_of_any_strides);
  const int64_t width = weight.size(0);
  const int64_t depth = weight.size(1);
  const Tensor out = custom_pypto::empty({tokens, width}, ScalarType::Float, rows);
  if (tokens == 0) return out;
  const auto element = static_cast<int>(custom_pypto::element_of(rows.scalar_type()));
  const int64_t of_row = depth * static_cast<int64_t>(rows.element_size());
  const auto scratch_bytes = kernels().product_scratch[element];
  // A multiple of every tile's rows.
  const int64_t block =
      std::min(tokens, std::max<int64_t>(1, kBytesOfRows / (scratch_bytes(depth, 1)) / 12) * 12);
  const int64_t units = custom_pypto::divide_up(width, kUnitWeights);
  const int64_t work = kUnitWeights * depth * block;
  const auto* from = static_cast<const char*>(rows.const_data_ptr());
  auto* to = static_cast<float*>(out.mutable_data_ptr());
  custom_pypto::parallel_for(
      0, units, custom_pypto::divide_up(kUnitWork, work), [&](int64_t begin, int64_t end) {
        char* const scratch = custom_pypto::Scratch::of_thread(scratch_bytes(depth, block));
        for (int64_t row = 0; row < tokens; row += block) {
          kernels().product[element]({from + row * of_row, std::min(block, tokens - row), depth,
                                      weight.const_data_ptr(), begin * kUnitWeights,
                                      std::min(width, end * kUnitWeights), to + row * width, width,
                                      scratch});
        }
      });
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

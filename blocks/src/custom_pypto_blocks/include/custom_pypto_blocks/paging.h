// Reads the integers that describe a paged cache: lengths, prefix sums, block tables.
//
// They are CPU tensors of int32 or int64 with any strides; dtype and shape are checked before.
// Values are checked here; the op writes the error.
#pragma once

#include <custom_pypto/abi.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The values of an int32 or int64 tensor, which must outlive it, by their distance in memory from
// the first one: values[row * tensor.stride(0) + column * tensor.stride(1)].
class Integers {
 public:
  explicit Integers(const torch::stable::Tensor& tensor)
      : data_(tensor.const_data_ptr()),
        is_wide_(tensor.scalar_type() == torch::headeronly::ScalarType::Long) {}

  int64_t operator[](int64_t offset) const {
    return is_wide_ ? static_cast<const int64_t*>(data_)[offset]
                    : static_cast<const int32_t*>(data_)[offset];
  }

 private:
  const void* data_;
  bool is_wide_;
};

// The tokens of blocks; INT64_MAX if the product overflows, as it may where no memory is needed.
inline int64_t tokens_of(int64_t blocks, int64_t block_size) {
  int64_t tokens = 0;
  return __builtin_mul_overflow(blocks, block_size, &tokens) ? INT64_MAX : tokens;
}

// Fills `lengths` from a tensor [sequences] of lengths from 0 to `longest`. For any other value it
// calls fail(length, sequence), which throws.
template <typename Fail>
void read_lengths(const torch::stable::Tensor& tensor, int64_t longest,
                  std::vector<int64_t>& lengths, const Fail& fail) {
  const Integers values(tensor);
  const int64_t stride = tensor.stride(0);
  lengths.resize(static_cast<std::size_t>(tensor.size(0)));
  int64_t sequence = 0;
  for (int64_t& length : lengths) {
    length = values[sequence * stride];
    if (CUSTOM_PYPTO_UNLIKELY(length < 0 || length > longest)) fail(length, sequence);
    ++sequence;
  }
}

// Fills `lengths` from a tensor [sequences] of prefix sums; with `begins_with_0` it is
// [sequences + 1]. For a sum that is less than the one before, or above `most`, or a first one that
// must be 0 and is not, it calls fail(sum, index, before), which throws.
template <typename Fail>
void read_prefix_sums(const torch::stable::Tensor& tensor, int64_t most,
                      std::vector<int64_t>& lengths, const Fail& fail, bool begins_with_0 = false) {
  const Integers values(tensor);
  const int64_t stride = tensor.stride(0);
  int64_t index = begins_with_0 ? 1 : 0;
  int64_t before = 0;
  if (begins_with_0 && values[0] != 0) fail(values[0], 0, before);
  lengths.resize(static_cast<std::size_t>(tensor.size(0) - index));
  for (int64_t& length : lengths) {
    const int64_t sum = values[index * stride];
    if (CUSTOM_PYPTO_UNLIKELY(sum < before || sum > most)) fail(sum, index, before);
    length = sum - before;
    before = sum;
    ++index;
  }
}

// A tensor [sequences, blocks of a sequence] of block numbers, which must outlive it.
class BlockTable {
 public:
  explicit BlockTable(const torch::stable::Tensor& tensor)
      : values_(tensor), row_stride_(tensor.stride(0)), column_stride_(tensor.stride(1)) {}

  // The block of tokens [index * block_size, ...) of a sequence. For one outside a cache of
  // `blocks` it calls fail(block), which throws.
  template <typename Fail>
  int64_t block(int64_t sequence, int64_t index, int64_t blocks, const Fail& fail) const {
    const int64_t found = values_[sequence * row_stride_ + index * column_stride_];
    if (CUSTOM_PYPTO_UNLIKELY(found < 0 || found >= blocks)) fail(found);
    return found;
  }

 private:
  Integers values_;
  int64_t row_stride_;
  int64_t column_stride_;
};

CUSTOM_PYPTO_NAMESPACE_END

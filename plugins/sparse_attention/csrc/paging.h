// Paged caches, the block tables that point into them, and the integers that say what is used.
#pragma once

#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention {

// The values of an int32 or int64 tensor, in row-major order.
class Integers {
 public:
  // Copies a tensor that is not contiguous.
  explicit Integers(const Tensor& tensor);

  int64_t operator[](int64_t index) const {
    return wide_ ? static_cast<const int64_t*>(data_)[index]
                 : static_cast<const int32_t*>(data_)[index];
  }

 private:
  Tensor tensor_;
  const void* data_;
  bool wide_;
};

// A cache [blocks, block_size, 1, size] whose rows of `size` elements are contiguous. Strides in
// bytes.
struct Cache {
  char* data;
  int64_t blocks;
  int64_t block_size;
  int64_t block_stride;
  int64_t token_stride;

  int64_t slots() const { return blocks * block_size; }
  char* row(int64_t block, int64_t token) const {
    return data + block * block_stride + token * token_stride;
  }
  char* row(int64_t slot) const { return row(slot / block_size, slot % block_size); }
};

enum class CacheUse { read, written };

// Of a cache [blocks, block_size, 1, size].
Cache cache_of(const Tensor& cache, CacheUse use);

// The slot of each token, checked against the cache's size.
std::vector<int64_t> read_slots(const char* op, const Tensor& cache_index, const Cache& cache);

// The argument block_table [sequences, width] of an op.
struct BlockTable {
  BlockTable(const char* op, const Tensor& block_table);

  // The block that holds a sequence's tokens [index * block_size, ...).
  int64_t block(int64_t sequence, int64_t index) const { return values[sequence * width + index]; }
  // Checks that block, which `sequence` needs.
  int64_t checked_block(int64_t sequence, int64_t index, int64_t blocks) const {
    const int64_t found = block(sequence, index);
    if (found < 0 || found >= blocks) fail_block(sequence, index, blocks);
    return found;
  }

  const char* op;
  int64_t width;
  Integers values;

 private:
  [[noreturn]] void fail_block(int64_t sequence, int64_t index, int64_t blocks) const;
};

// How many tokens each sequence has; checked against what its row of the block table can hold.
// `name` is that of the argument `lengths`.
std::vector<int64_t> read_lengths(const char* name, const Tensor& lengths, const BlockTable& table,
                                  int64_t block_size);

// Checks every block that sequences of these lengths need.
void check_blocks(const BlockTable& table, const std::vector<int64_t>& lengths, const Cache& cache);

}  // namespace custom_pypto_sparse_attention

// Paged caches, and checks of the slots, lengths and block tables that say what of them is used.
#pragma once

#include <custom_pypto/paging.h>

#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention {

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

// How many keys each sequence has; checked against the `width` blocks that a row of the block table
// holds. `name` is that of the argument `lengths`.
std::vector<int64_t> read_key_lengths(const char* op, const char* name, const Tensor& lengths,
                                      int64_t width, int64_t block_size);

// The block that holds a sequence's tokens [index * block_size, ...), which it needs.
inline int64_t needed_block(const char* op, const custom_pypto::BlockTable& table, int64_t sequence,
                            int64_t index, int64_t blocks) {
  return table.block(sequence, index, blocks, [&](int64_t found) {
    fail(op, "block_table", "must hold a block from 0 to ", blocks - 1, " at [", sequence, ", ",
         index, "], which is needed, got ", found);
  });
}

// Checks every block that sequences of these lengths need.
void check_blocks(const char* op, const Tensor& block_table, const std::vector<int64_t>& lengths,
                  const Cache& cache);

}  // namespace custom_pypto_sparse_attention

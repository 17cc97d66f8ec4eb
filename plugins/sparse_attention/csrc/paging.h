// Checks of the lengths and block tables that say what of a paged cache is used.
#pragma once

#include <custom_pypto/paged_cache.h>
#include <custom_pypto/paging.h>

#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention {

using custom_pypto::cache_of;
using custom_pypto::CacheUse;
using custom_pypto::PagedCache;
using custom_pypto::read_slots;

// Keys as attention reads them: of a cache [blocks, block_size, 1, size], of [sequences, tokens, 1,
// size], or, as one block, of [tokens, 1, size].
PagedCache keys_of(const Tensor& keys);

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
                  const PagedCache& cache);

}  // namespace custom_pypto_sparse_attention

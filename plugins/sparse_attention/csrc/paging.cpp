// Block tables and lengths, read and checked.
#include "paging.h"

namespace custom_pypto_sparse_attention {

PagedCache keys_of(const Tensor& keys) {
  const PagedCache cache = cache_of(keys, CacheUse::read);
  if (keys.dim() > 3) return cache;
  return {cache.data, 1, cache.blocks, 0, cache.block_stride};
}

std::vector<int64_t> read_key_lengths(const char* op, const char* name, const Tensor& lengths,
                                      int64_t width, int64_t block_size) {
  const int64_t longest = width * block_size;
  std::vector<int64_t> result;
  custom_pypto::read_lengths(lengths, longest, result, [&](int64_t length, int64_t sequence) {
    fail(op, name, "must be from 0 to ", longest, " (", width, " blocks of ", block_size,
         " in a row of block_table), got ", length, " for sequence ", sequence);
  });
  return result;
}

void check_blocks(const char* op, const Tensor& block_table, const std::vector<int64_t>& lengths,
                  const PagedCache& cache) {
  const custom_pypto::BlockTable table(block_table);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const int64_t needed = custom_pypto::blocks_of(lengths[b], cache.block_size);
    for (int64_t index = 0; index < needed; ++index) {
      needed_block(op, table, static_cast<int64_t>(b), index, cache.blocks);
    }
  }
}

}  // namespace custom_pypto_sparse_attention

// Paged caches, block tables and lengths, read and checked.
#include "paging.h"

#include "activations.h"

namespace custom_pypto_sparse_attention {

Cache cache_of(const Tensor& cache, CacheUse use) {
  const int64_t bytes = bytes_of(element_of(cache.scalar_type()));
  // Asking for mutable memory gives a lazily cloned tensor its own; the original keeps its numbers.
  void* data = use == CacheUse::written ? cache.mutable_data_ptr()
                                        : const_cast<void*>(cache.const_data_ptr());
  return {static_cast<char*>(data), cache.size(0), cache.size(1), cache.stride(0) * bytes,
          cache.stride(1) * bytes};
}

std::vector<int64_t> read_slots(const char* op, const Tensor& cache_index, const Cache& cache) {
  const Tensor source = dense(cache_index);
  const custom_pypto::Integers values(source);
  std::vector<int64_t> slots(static_cast<std::size_t>(cache_index.numel()));
  for (std::size_t token = 0; token < slots.size(); ++token) {
    const int64_t slot = values[static_cast<int64_t>(token)];
    check(slot >= 0 && slot < cache.slots(), op, "cache_index", "must hold slots from 0 to ",
          cache.slots() - 1, " (", cache.blocks, " blocks of ", cache.block_size, "), got ", slot,
          " for token ", token);
    slots[token] = slot;
  }
  return slots;
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
                  const Cache& cache) {
  const custom_pypto::BlockTable table(block_table);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const int64_t needed = custom_pypto::blocks_of(lengths[b], cache.block_size);
    for (int64_t index = 0; index < needed; ++index) {
      needed_block(op, table, static_cast<int64_t>(b), index, cache.blocks);
    }
  }
}

}  // namespace custom_pypto_sparse_attention

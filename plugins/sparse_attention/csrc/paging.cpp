// Paged caches, block tables and lengths, read and checked.
#include "paging.h"

#include "activations.h"

namespace custom_pypto_sparse_attention {

Integers::Integers(const Tensor& tensor)
    : tensor_(dense(tensor)),
      data_(tensor_.const_data_ptr()),
      wide_(tensor_.scalar_type() == ScalarType::Long) {}

Cache cache_of(const Tensor& cache, CacheUse use) {
  const int64_t bytes = bytes_of(element_of(cache.scalar_type()));
  // Asking for mutable memory gives a lazily cloned tensor its own; the original keeps its numbers.
  void* data = use == CacheUse::written ? cache.mutable_data_ptr()
                                        : const_cast<void*>(cache.const_data_ptr());
  return {static_cast<char*>(data), cache.size(0), cache.size(1), cache.stride(0) * bytes,
          cache.stride(1) * bytes};
}

std::vector<int64_t> read_slots(const char* op, const Tensor& cache_index, const Cache& cache) {
  const Integers values(cache_index);
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

BlockTable::BlockTable(const char* op, const Tensor& block_table)
    : op(op), width(block_table.size(1)), values(block_table) {}

void BlockTable::fail_block(int64_t sequence, int64_t index, int64_t blocks) const {
  fail(op, "block_table", "must hold a block from 0 to ", blocks - 1, " at [", sequence, ", ",
       index, "], which is needed, got ", block(sequence, index));
}

std::vector<int64_t> read_lengths(const char* name, const Tensor& lengths, const BlockTable& table,
                                  int64_t block_size) {
  const Integers values(lengths);
  const int64_t longest = table.width * block_size;
  std::vector<int64_t> result(static_cast<std::size_t>(lengths.numel()));
  for (std::size_t b = 0; b < result.size(); ++b) {
    const int64_t length = values[static_cast<int64_t>(b)];
    check(length >= 0 && length <= longest, table.op, name, "must be from 0 to ", longest, " (",
          table.width, " blocks of ", block_size, " in a row of block_table), got ", length,
          " for sequence ", b);
    result[b] = length;
  }
  return result;
}

void check_blocks(const BlockTable& table, const std::vector<int64_t>& lengths,
                  const Cache& cache) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const int64_t needed = (lengths[b] + cache.block_size - 1) / cache.block_size;
    for (int64_t index = 0; index < needed; ++index) {
      table.checked_block(static_cast<int64_t>(b), index, cache.blocks);
    }
  }
}

}  // namespace custom_pypto_sparse_attention

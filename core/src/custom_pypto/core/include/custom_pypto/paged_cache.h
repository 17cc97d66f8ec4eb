// A paged cache that a CPU kernel reads or writes, and the slots to which tokens are written.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/paging.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// A cache [blocks, block_size, ..] whose rows, [..], are contiguous. Strides in bytes.
struct PagedCache {
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

// From a tensor [blocks, block_size, ..].
inline PagedCache cache_of(const Tensor& cache, CacheUse use) {
  const auto bytes = static_cast<int64_t>(cache.element_size());
  // Asking for mutable memory gives a lazily cloned tensor its own; the original keeps its numbers.
  void* data = use == CacheUse::written ? cache.mutable_data_ptr()
                                        : const_cast<void*>(cache.const_data_ptr());
  return {static_cast<char*>(data), cache.size(0), cache.size(1), cache.stride(0) * bytes,
          cache.stride(1) * bytes};
}

// The slot of each token, checked against the cache's size. Throws std::runtime_error that begins
// with `op` and names the argument `name`.
inline std::vector<int64_t> read_slots(const char* op, const char* name, const Tensor& slots,
                                       const PagedCache& cache) {
  const Tensor source = to_contiguous(slots);
  const Integers values(source);
  std::vector<int64_t> result(static_cast<std::size_t>(slots.numel()));
  for (std::size_t token = 0; token < result.size(); ++token) {
    const int64_t slot = values[static_cast<int64_t>(token)];
    check(slot >= 0 && slot < cache.slots(), op, name, "must hold slots from 0 to ",
          cache.slots() - 1, " (", cache.blocks, " blocks of ", cache.block_size, "), got ", slot,
          " for token ", token);
    result[token] = slot;
  }
  return result;
}

CUSTOM_PYPTO_NAMESPACE_END

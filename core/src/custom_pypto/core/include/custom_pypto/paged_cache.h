// A paged cache that a CPU kernel reads or writes, and the slots to which tokens are written.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/paging.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Rows of a cache as they were: they are put back unless release() is called, as where a later step
// of an op has no memory. An op that calls others cannot reserve theirs before it writes.
class KeptRows {
 public:
  // `cache` and `slots` must outlive it; `row_bytes` counts the bytes of a row.
  KeptRows(const PagedCache& cache, const std::vector<int64_t>& slots, int64_t row_bytes)
      : cache_(cache),
        slots_(slots),
        row_bytes_(static_cast<std::size_t>(row_bytes)),
        rows_(slots.size() * row_bytes_) {
    for_each([](char* row, char* kept, std::size_t bytes) { std::memcpy(kept, row, bytes); });
  }
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;
  ~KeptRows() {
    for_each([](char* row, char* kept, std::size_t bytes) { std::memcpy(row, kept, bytes); });
  }

  void release() { rows_.clear(); }

 private:
  template <class Copy>
  void for_each(const Copy& copy) {
    if (rows_.empty()) return;
    char* kept = rows_.data();
    for (const int64_t slot : slots_) {
      copy(cache_.row(slot), kept, row_bytes_);
      kept += row_bytes_;
    }
  }

  const PagedCache& cache_;
  const std::vector<int64_t>& slots_;
  std::size_t row_bytes_;
  std::vector<char> rows_;
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

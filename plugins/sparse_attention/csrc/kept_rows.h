// Rows of a paged cache that a later step of an op may have to put back.
#pragma once

#include <custom_pypto_blocks/paged_cache.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention {

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
      if (slot >= 0) copy(cache_.row(slot), kept, row_bytes_);  // padding has no row
      kept += row_bytes_;
    }
  }

  const PagedCache& cache_;
  const std::vector<int64_t>& slots_;
  std::size_t row_bytes_;
  std::vector<char> rows_;
};

}  // namespace custom_pypto_sparse_attention

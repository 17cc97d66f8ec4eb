// Iterates over the keys of a sequence in order.
#pragma once

#include "indexer_kernels.h"
#include "rows.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_lightning_indexer::Keys;

// Distance of the prefetch from the tile, in keys.
inline constexpr int64_t kPrefetchAhead = 4 * kTileKeys;

// Keys per TLB-warming batch.
inline constexpr int64_t kTlbBatchKeys = 48 * kTokenBlock;

class KeyCursor {
 public:
  KeyCursor(const Keys& keys, int64_t token)
      : keys_(keys),
        size_(bytes_of(keys.element)),
        step_(keys.token_stride * size_),
        block_(keys.blocks == nullptr ? 0 : token / keys.block_size),
        in_block_(keys.blocks == nullptr ? token : token % keys.block_size) {}

  // Keys that are token_stride elements apart.
  struct Run {
    const char* first;
    int64_t keys;
  };

  // The next keys, at most `limit`.
  Run next_run(int64_t limit) {
    const char* block = keys_.data;
    int64_t keys = limit;
    const int64_t first = in_block_;
    if (keys_.blocks == nullptr) {
      in_block_ += keys;
    } else {
      block += keys_.blocks[block_] * keys_.block_stride * size_;
      const int64_t left = keys_.block_size - first;
      if (keys < left) {
        in_block_ += keys;
      } else {
        keys = left;
        in_block_ = 0;
        ++block_;
      }
    }
    return {block + first * step_, keys};
  }

  // Writes the addresses of the next `count` keys to `at`.
  void next(int64_t count, const char** at) {
    while (count > 0) {
      const Run run = next_run(count);
      for (int64_t i = 0; i < run.keys; ++i) at[i] = run.first + i * step_;
      at += run.keys;
      count -= run.keys;
    }
  }

  // Prefetches one cache line of each page of the next `count` keys: each waits for a TLB miss, and
  // many misses at a time take little longer than one.
  void warm_tlb(int64_t count) {
    const int64_t page_step = step_ > kPageBytes ? step_ : kPageBytes;
    while (count > 0) {
      const Run run = next_run(count);
      for (int64_t i = 0; i < run.keys * step_; i += page_step) __builtin_prefetch(run.first + i);
      count -= run.keys;
    }
  }

 private:
  static constexpr int64_t kPageBytes = 4096;

  const Keys& keys_;
  int64_t size_;
  int64_t step_;
  int64_t block_;
  int64_t in_block_;
};

// The addresses of a block of kBlock keys, and of the kAhead keys after it. Past the last key, the
// last key's address is repeated.
template <int64_t kBlock, int64_t kAhead>
class KeyAddresses {
 public:
  KeyAddresses(const Keys& keys, int64_t first, int64_t last)
      : cursor_(keys, first), left_(last - first) {
    fill(0);
  }

  const char* const* block() const { return addresses_; }
  const char* const* next_block() const { return addresses_ + kBlock; }

  void advance() {
    __builtin_memmove(addresses_, next_block(), kAhead * sizeof addresses_[0]);
    fill(kAhead);
  }

 private:
  static constexpr int64_t kCount = kBlock + kAhead;

  void fill(int64_t from) {
    const int64_t count = left_ < kCount - from ? left_ : kCount - from;
    cursor_.next(count, addresses_ + from);
    left_ -= count;
    for (int64_t i = from + count; i < kCount; ++i) addresses_[i] = addresses_[i - 1];
  }

  KeyCursor cursor_;
  int64_t left_;
  const char* addresses_[kCount];
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

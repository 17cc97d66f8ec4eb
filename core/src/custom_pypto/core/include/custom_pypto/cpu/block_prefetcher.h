// Prefetches a block of a matrix while another one is multiplied.
#pragma once

#include <custom_pypto/cpu/vectors.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Prefetches rows of `bytes` bytes, line by line and row by row, spread over `calls` calls of
// advance (0: no prefetch). Into the L2 cache: a block is larger than the L1 cache.
class BlockPrefetcher {
 public:
  void begin(const void* first, int64_t rows, int64_t stride, int64_t bytes, int64_t calls) {
    row_ = static_cast<const char*>(first);
    rows_ = rows;
    stride_ = stride;
    bytes_ = bytes;
    at_ = 0;
    lines_per_call_ = calls == 0 ? 0 : ((bytes + kLine - 1) / kLine * rows + calls - 1) / calls;
  }

  inline void advance() {
    if (rows_ == 0) return;
    for (int64_t line = 0; line < lines_per_call_; ++line) {
      __builtin_prefetch(row_ + at_, 0, kIntoL2);
      at_ += kLine;
      if (at_ < bytes_) continue;
      at_ = 0;
      row_ += stride_;
      if (--rows_ == 0) return;
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int kIntoL2 = 2;  // of __builtin_prefetch's 0 to 3

  const char* row_ = nullptr;
  int64_t rows_ = 0;
  int64_t stride_ = 0;
  int64_t bytes_ = 0;
  int64_t at_ = 0;
  int64_t lines_per_call_ = 0;
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

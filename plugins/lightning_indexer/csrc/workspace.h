// Memory that one call leaves to the next on the same thread.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "cpu/kernels.h"

namespace custom_pypto_lightning_indexer {

// An aligned block of bytes that only grows. Its contents do not survive growing.
class AlignedBuffer {
 public:
  // At least `size` bytes, aligned to kAlignment.
  char* reserve(std::size_t size) {
#ifdef __SANITIZE_ADDRESS__
    size_ = 0;  // memory of just this size each time, so that no overrun is hidden by what is spare
#endif
    if (size > size_) {
      const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
      bytes_.reset();
      size_ = 0;
      bytes_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, rounded)));
      if (bytes_ == nullptr) throw std::bad_alloc();
      size_ = rounded;
    }
    return bytes_.get();
  }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<char, Free> bytes_;
  std::size_t size_ = 0;
};

}  // namespace custom_pypto_lightning_indexer

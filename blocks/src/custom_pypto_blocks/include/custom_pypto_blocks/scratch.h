// Scratch: memory for kernels, kept from one call to the next on the same thread.
#pragma once

#include <custom_pypto/abi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The alignment of scratch: a cache line, and the widest vector.
inline constexpr std::size_t kScratchAlignment = 64;

// An aligned block of bytes that only grows. Its contents do not survive growing.
class Scratch {
 public:
  // At least `size` bytes, aligned to kScratchAlignment.
  char* reserve(std::size_t size) {
#ifdef __SANITIZE_ADDRESS__
    size_ = 0;  // exactly this size each time, so that spare memory hides no overrun
#endif
    if (size > size_) {
      const std::size_t rounded =
          (size + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
      bytes_.reset();
      size_ = 0;
      bytes_.reset(static_cast<char*>(std::aligned_alloc(kScratchAlignment, rounded)));
      if (bytes_ == nullptr) throw std::bad_alloc();
      size_ = rounded;
    }
    return bytes_.get();
  }

  // The scratch of this thread, shared by all kernels of a plugin: one runs at a time.
  static char* of_thread(int64_t size) {
    thread_local Scratch scratch;
    return scratch.reserve(static_cast<std::size_t>(size));
  }

 private:
  struct Free {
    void operator()(char* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<char, Free> bytes_;
  std::size_t size_ = 0;
};

CUSTOM_PYPTO_NAMESPACE_END

// Sizes or strides of a tensor, without an allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace custom_pypto_simulator {

// Sizes or strides, without an allocation: a launch should cost a test little.
class Dims {
 public:
  static constexpr size_t kMost = 16;

  // Throws std::length_error.
  void assign(const int64_t* begin, const int64_t* end) {
    resize(static_cast<size_t>(end - begin));
    std::copy(begin, end, values_);
  }

  void resize(size_t size) {
    if (size > kMost) throw std::length_error("a tensor has more than 16 dimensions");
    size_ = size;
  }

  size_t size() const { return size_; }
  const int64_t* data() const { return values_; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + size_; }
  int64_t operator[](size_t index) const { return values_[index]; }
  int64_t& operator[](size_t index) { return values_[index]; }

 private:
  size_t size_ = 0;
  int64_t values_[kMost] = {};
};

}  // namespace custom_pypto_simulator

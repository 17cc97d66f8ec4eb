// Rotary position embeddings of single rows, in fp32, rounded once to T.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Sines and cosines of each token's angles, [tokens, size].
class Angles {
 public:
  Angles(const Tensor& sin, const Tensor& cos, int64_t size)
      : size_(size), sin_(read_floats(sin)), cos_(read_floats(cos)) {}

  const float* sin(int64_t token) const { return sin_.data() + token * size_; }
  const float* cos(int64_t token) const { return cos_.data() + token * size_; }

  // Rotates as many elements of a row of x as the token has angles; even elements come first in
  // out, then odd ones. out must not be x.
  template <class T>
  void rotate(int64_t token, const T* x, T* out) const {
    const float* const sin = this->sin(token);
    const float* const cos = this->cos(token);
    const int64_t half = size_ / 2;
    for (int64_t i = 0; i < half; ++i) {
      const float even = static_cast<float>(x[2 * i]);
      const float odd = static_cast<float>(x[2 * i + 1]);
      out[i] = static_cast<T>(even * cos[i] - odd * sin[i]);
      out[half + i] = static_cast<T>(odd * cos[half + i] + even * sin[half + i]);
    }
  }

 private:
  int64_t size_;
  std::vector<float> sin_;
  std::vector<float> cos_;
};

CUSTOM_PYPTO_NAMESPACE_END

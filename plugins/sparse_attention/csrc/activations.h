// The activations of a prolog: tokens, their dtype, and what depends on them.
#pragma once

#include <custom_pypto/dtype.h>

#include <vector>

#include "common.h"
#include "rows.h"

namespace custom_pypto_sparse_attention {

// The kernels' name for one of the dtypes that activations may have.
Element element_of(ScalarType dtype);
int64_t bytes_of(Element element);

// Calls f with a value of the C++ type that stands for `element`.
template <class F>
void visit_element(Element element, const F& f) {
  if (element == Element::fp32) return f(float{});
  if (element == Element::fp16) return f(custom_pypto::Half{});
  return f(custom_pypto::BFloat16{});
}

// `tensor` itself, or a contiguous copy. For arguments of which there is little.
Tensor dense(const Tensor& tensor);

// All numbers of a tensor in row-major order, as fp32.
std::vector<float> read_floats(const Tensor& tensor);

// How many tokens x [*tokens, H] holds.
int64_t token_count(const custom_pypto::Span& tokens);

// Sines and cosines of each token's angles, [tokens, size].
class Angles {
 public:
  Angles(const Tensor& sin, const Tensor& cos, int64_t size)
      : size_(size), sin_(read_floats(sin)), cos_(read_floats(cos)) {}

  // Rotates as many elements of a row of x as the token has angles. out must not be x.
  template <class T>
  void rotate(int64_t token, const T* x, T* out) const {
    rope(x, size_, sin_.data() + token * size_, cos_.data() + token * size_, out);
  }

 private:
  int64_t size_;
  std::vector<float> sin_;
  std::vector<float> cos_;
};

}  // namespace custom_pypto_sparse_attention

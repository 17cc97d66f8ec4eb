// The activations of a prolog: tokens, their dtype, and what depends on them.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/cpu/element.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/rows.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

inline Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  return dtype == ScalarType::Half ? Element::fp16 : Element::fp32;
}

// Calls f with a value of the C++ type that stands for `element`.
template <class F>
void visit_element(Element element, const F& f) {
  if (element == Element::fp32) return f(float{});
  if (element == Element::fp16) return f(Half{});
  return f(BFloat16{});
}

// All numbers of a tensor in row-major order, as fp32.
inline std::vector<float> read_floats(const Tensor& tensor) {
  const Tensor source = to_contiguous(tensor);
  std::vector<float> values(static_cast<std::size_t>(source.numel()));
  visit_element(element_of(source.scalar_type()), [&](auto number) {
    const auto* data = static_cast<const decltype(number)*>(source.const_data_ptr());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(data[i]);
  });
  return values;
}

// Sines and cosines of each token's angles, [tokens, size].
class Angles {
 public:
  Angles(const Tensor& sin, const Tensor& cos, int64_t size)
      : size_(size), sin_(read_floats(sin)), cos_(read_floats(cos)) {}

  const float* sin(int64_t token) const { return sin_.data() + token * size_; }
  const float* cos(int64_t token) const { return cos_.data() + token * size_; }

  // Rotates as many elements of a row of x as the token has angles. out must not be x.
  template <class T>
  void rotate(int64_t token, const T* x, T* out) const {
    rope(x, size_, sin(token), cos(token), out);
  }

 private:
  int64_t size_;
  std::vector<float> sin_;
  std::vector<float> cos_;
};

CUSTOM_PYPTO_NAMESPACE_END

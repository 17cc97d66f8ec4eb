// The activations of a prolog: tokens, their dtype, and what depends on them.
#pragma once

#include <custom_pypto/dtype.h>

#include <initializer_list>
#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention {

// The kernels' name for a dtype that check_activations lets through.
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

// bf16, fp16 or fp32.
void check_activations(const Arg& argument);

// Checks that `argument` has the sizes of x but for the last dimension, and, where `last` is not
// negative, so many in that one.
void check_like_tokens(const Arg& argument, const Arg& x, int64_t last, const char* meaning);

// The dtype of x or fp32, and the device of x.
void check_parameter(const Arg& argument, const Arg& x);

// All numbers of a tensor in row-major order, as fp32. The dtype is one of check_activations.
std::vector<float> read_floats(const Tensor& tensor);

// Sines and cosines of each token's angles, [tokens, size].
struct Angles {
  int64_t size;
  std::vector<float> sin;
  std::vector<float> cos;
};

// Checks sin and cos against x and each other; gives the size of their last dimension.
int64_t check_angles(const Arg& sin, const Arg& cos, const Arg& x);

// Uninitialised, like x but with `last` in place of its last dimension.
Tensor empty_like_tokens(const Tensor& x, std::initializer_list<int64_t> last);

// How many tokens x [.., H] holds.
int64_t token_count(const Tensor& x);

}  // namespace custom_pypto_sparse_attention

#include "activations.h"

#include <custom_pypto/empty.h>
#include <torch/csrc/stable/ops.h>

namespace custom_pypto_sparse_attention {

Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  return dtype == ScalarType::Half ? Element::fp16 : Element::fp32;
}

int64_t bytes_of(Element element) { return element == Element::fp32 ? 4 : 2; }

Tensor dense(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

void check_activations(const Arg& argument) {
  argument.dtype({ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
}

void check_like_tokens(const Arg& argument, const Arg& x, int64_t last, const char* meaning) {
  const int64_t rank = x.tensor().dim();
  argument.rank(last < 0 ? rank - 1 : rank).same_device(x);
  for (int64_t dim = 0; dim < rank - 1; ++dim) {
    argument.size(dim, x.tensor().size(dim), "as many tokens as x");
  }
  if (last >= 0) argument.size(-1, last, meaning);
}

void check_parameter(const Arg& argument, const Arg& x) {
  argument.same_device(x);
  if (argument.tensor().scalar_type() != ScalarType::Float) argument.same_dtype(x);
}

std::vector<float> read_floats(const Tensor& tensor) {
  const Tensor source = dense(tensor);
  std::vector<float> values(static_cast<std::size_t>(source.numel()));
  visit_element(element_of(source.scalar_type()), [&](auto number) {
    const auto* data = static_cast<const decltype(number)*>(source.const_data_ptr());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(data[i]);
  });
  return values;
}

int64_t check_angles(const Arg& sin, const Arg& cos, const Arg& x) {
  sin.rank(x.tensor().dim());
  const int64_t size = sin.tensor().size(-1);
  check(size >= 2 && size % 2 == 0, sin.op(), sin.name(),
        "must have an even, positive size in its last dimension (pairs of dims are rotated), got ",
        sin.tensor().sizes());
  for (const Arg* angle : {&sin, &cos}) {
    check_like_tokens(*angle, x, size, "the size of sin");
    check_parameter(*angle, x);
  }
  return size;
}

Tensor empty_like_tokens(const Tensor& x, std::initializer_list<int64_t> last) {
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
  sizes.insert(sizes.end(), last);
  return custom_pypto::empty(sizes, x);
}

int64_t token_count(const Tensor& x) {
  int64_t count = 1;
  for (int64_t dim = 0; dim + 1 < x.dim(); ++dim) count *= x.size(dim);
  return count;
}

}  // namespace custom_pypto_sparse_attention

// What tensors of activations hold: dtypes, contiguous copies, floats, number of tokens.
#include "activations.h"

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

std::vector<float> read_floats(const Tensor& tensor) {
  const Tensor source = dense(tensor);
  std::vector<float> values(static_cast<std::size_t>(source.numel()));
  visit_element(element_of(source.scalar_type()), [&](auto number) {
    const auto* data = static_cast<const decltype(number)*>(source.const_data_ptr());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(data[i]);
  });
  return values;
}

int64_t token_count(const custom_pypto::Span& tokens) {
  int64_t count = 1;
  for (const int64_t size : tokens) count *= size;
  return count;
}

}  // namespace custom_pypto_sparse_attention

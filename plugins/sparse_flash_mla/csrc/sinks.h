// The sinks: a score of each head that takes weight and has no value.
#pragma once

#include <custom_pypto/tensor_ops.h>

#include <optional>
#include <vector>

namespace custom_pypto_sparse_flash_mla {

// The numbers of sinks [heads] in fp32 or fp64; none if it is None.
template <class Real>
std::vector<Real> read_sinks(const std::optional<custom_pypto::Tensor>& sinks) {
  std::vector<Real> numbers;
  if (!sinks) return numbers;
  const custom_pypto::Tensor values = custom_pypto::to_contiguous(*sinks);
  const bool is_wide = values.scalar_type() == custom_pypto::ScalarType::Double;
  for (int64_t i = 0; i < values.numel(); ++i) {
    numbers.push_back(is_wide ? static_cast<Real>(values.const_data_ptr<double>()[i])
                              : static_cast<Real>(values.const_data_ptr<float>()[i]));
  }
  return numbers;
}

}  // namespace custom_pypto_sparse_flash_mla

// The gradient of rows that many tokens attend to, while tokens add to it.
#pragma once

#include <custom_pypto/parallel.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace custom_pypto_sparse_attention {

// Sums in Real of `slots` rows, at first 0; in the result itself if its elements T are Real.
template <class T, class Real>
struct GradientSums {
  GradientSums(const torch::stable::Tensor& result, int64_t slots, int64_t columns)
      : result(result), columns(columns) {
    const auto count = static_cast<std::size_t>(slots * columns);
    if constexpr (std::is_same_v<T, Real>) {
      data = static_cast<Real*>(result.mutable_data_ptr());
      std::fill_n(data, count, Real{0});
    } else {
      own.resize(count);
      data = own.data();
    }
  }

  // Rounds the sums into the result.
  void write() const {
    if constexpr (!std::is_same_v<T, Real>) {
      T* const to = static_cast<T*>(result.mutable_data_ptr());
      constexpr int64_t kGrain = 1 << 15;
      custom_pypto::parallel_for(0, static_cast<int64_t>(own.size()), kGrain,
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     to[i] = static_cast<T>(data[i]);
                                   }
                                 });
    }
  }

  Real* row(int64_t slot) const { return data + slot * columns; }

  const torch::stable::Tensor& result;
  int64_t columns;
  Real* data = nullptr;
  std::vector<Real> own;
};

}  // namespace custom_pypto_sparse_attention

// The CPU kernel of rms_norm, and the registration of both kernels.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <cmath>
#include <cstdint>

#include "ops.h"

namespace {

using Op = ops::rms_norm;

// Fewest elements for a thread.
constexpr int64_t kGrain = 8192;

template <typename T>
void normalise(const Op::Arguments& a, int64_t size, const Op::Outputs& out) {
  const auto source = custom_pypto::to_contiguous(a.x);
  const auto gamma = custom_pypto::read_floats(a.gamma);
  const T* x = source.const_data_ptr<T>();
  T* y = out.y.mutable_data_ptr<T>();
  float* rstd = out.rstd.mutable_data_ptr<float>();
  const int64_t rows = out.rstd.numel();
  custom_pypto::parallel_for(0, rows, 1 + kGrain / size, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * size;
      float sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        sum += static_cast<float>(from[i]) * static_cast<float>(from[i]);
      }
      const float scale = 1 / std::sqrt(sum / size + static_cast<float>(a.epsilon));
      rstd[row] = scale;
      for (int64_t i = 0; i < size; ++i) {
        y[row * size + i] = static_cast<T>(static_cast<float>(from[i]) * scale * gamma[i]);
      }
    }
  });
}

void rms_norm_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  custom_pypto::visit_dtype<float, custom_pypto::Half, custom_pypto::BFloat16>(
      Op::name, "x", a.x.scalar_type(),
      [&](auto tag) { normalise<typename decltype(tag)::type>(a, s.D, out); });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&rms_norm_cpu>("CPU").impl<&Op::launch>("PrivateUse1");
}

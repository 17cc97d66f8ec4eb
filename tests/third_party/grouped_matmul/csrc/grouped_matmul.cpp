// The CPU kernel of grouped_matmul, and its registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops.h"

namespace {

using Op = ops::grouped_matmul;

// Fewest multiplications for a thread.
constexpr int64_t kGrain = 65536;

// One product of a [rows, K] and b [K, columns], with a bias or none.
template <typename T>
void multiply(const std::vector<float>& a, const std::vector<float>& b,
              const std::vector<float>& bias, int64_t rows, int64_t K, int64_t columns, T* to) {
  const int64_t grain = 1 + kGrain / (K * columns + 1);
  custom_pypto::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> sums(static_cast<std::size_t>(columns));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t n = 0; n < columns; ++n) sums[n] = bias.empty() ? 0 : bias[n];
      for (int64_t k = 0; k < K; ++k) {
        const float value = a[row * K + k];
        for (int64_t n = 0; n < columns; ++n) sums[n] += value * b[k * columns + n];
      }
      for (int64_t n = 0; n < columns; ++n) to[row * columns + n] = static_cast<T>(sums[n]);
    }
  });
}

void grouped_matmul_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  for (std::size_t i = 0; i < a.x.size(); ++i) {
    const auto x = custom_pypto::read_floats(a.x[i]);
    const auto weight = custom_pypto::read_floats(a.weight[i]);
    const auto bias = a.bias ? custom_pypto::read_floats((*a.bias)[i]) : std::vector<float>();
    custom_pypto::visit_dtype<float, custom_pypto::BFloat16>(
        Op::name, "x", a.x[i].scalar_type(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          multiply(x, weight, bias, s.M[i], s.K, s.N[i], out.y[i].mutable_data_ptr<T>());
        });
  }
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Op>().impl<&grouped_matmul_cpu>("CPU"); }

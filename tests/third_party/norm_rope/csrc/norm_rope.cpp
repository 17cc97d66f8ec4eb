// The CPU kernel of norm_rope, and its registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ops.h"

namespace {

using Op = ops::norm_rope;
using torch::stable::Tensor;

// Fewest elements for a thread.
constexpr int64_t kGrain = 4096;

// Head `head` of a tensor [*tokens, N, D] whose last dim is contiguous.
template <typename T>
const T* row_of(const Tensor& x, int64_t head) {
  const T* found = x.const_data_ptr<T>();
  for (int64_t dim = x.dim() - 2; dim >= 0; --dim) {
    found += head % x.size(dim) * x.stride(dim);
    head /= x.size(dim);
  }
  return found;
}

template <typename T>
void forward(const Op::Arguments& a, const Op::CallShape& s, const Tensor& to) {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto weight = custom_pypto::read_floats<W>(a.weight);
  const auto cosines = custom_pypto::read_floats<W>(a.cos);
  const auto sines = custom_pypto::read_floats<W>(a.sin);
  T* out = to.mutable_data_ptr<T>();
  const int64_t half = s.D / 2;
  const int64_t heads = s.D == 0 ? 0 : a.x.numel() / s.D;
  custom_pypto::parallel_for(0, heads, 1 + kGrain / (s.D + 1), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const T* row = row_of<T>(a.x, head);
      T* result = out + head * s.D;
      W sum = 0;
      for (int64_t i = 0; i < s.D; ++i) sum += static_cast<W>(row[i]) * static_cast<W>(row[i]);
      const W scale = 1 / std::sqrt(sum / static_cast<W>(s.D) + static_cast<W>(a.eps));
      const W* cos = cosines.data() + head / s.N * half;
      const W* sin = sines.data() + head / s.N * half;
      for (int64_t i = 0; i < half; ++i) {
        const W first = static_cast<W>(row[i]) * scale * weight[i];
        const W second = static_cast<W>(row[half + i]) * scale * weight[half + i];
        result[i] = static_cast<T>(first * cos[i] - second * sin[i]);
        result[half + i] = static_cast<T>(second * cos[i] + first * sin[i]);
      }
    }
  });
}

void norm_rope_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  custom_pypto::visit_dtype<float, double, custom_pypto::Half, custom_pypto::BFloat16>(
      Op::name, "x", a.x.scalar_type(),
      [&](auto tag) { forward<typename decltype(tag)::type>(a, s, out.result); });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Op>().impl<&norm_rope_cpu>("CPU"); }

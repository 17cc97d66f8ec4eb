// The CPU kernel of sample_tokens, and its registration.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "ops.h"

namespace {

using Op = ops::sample_tokens;
using torch::stable::Tensor;

// Fewest logits for a thread.
constexpr int64_t kGrain = 1024;

// softmax(logits / temperature)
template <typename T>
std::vector<double> probabilities(const T* logits, int64_t size, double temperature) {
  std::vector<double> p(static_cast<std::size_t>(size));
  for (int64_t i = 0; i < size; ++i) p[i] = static_cast<double>(logits[i]) / temperature;
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& each : p) sum += each = std::exp(each - largest);
  for (double& each : p) each /= sum;
  return p;
}

// The token with the largest probability / noise, of the likeliest whose sum reaches top_p.
int64_t choose(const std::vector<double>& p, const float* noise, double top_p) {
  std::vector<int64_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[a] > p[b]; });
  int64_t chosen = order[0];
  double before = 0;
  for (const int64_t token : order) {
    if (before >= top_p) break;
    if (p[token] / noise[token] > p[chosen] / noise[chosen]) chosen = token;
    before += p[token];
  }
  return chosen;
}

template <typename T>
void sample(const Op::Arguments& a, const Op::CallShape& s, const Tensor& noise, int64_t* tokens) {
  const T* logits = a.logits.const_data_ptr<T>();
  const float* drawn = noise.const_data_ptr<float>();
  custom_pypto::parallel_for(0, s.B, 1 + kGrain / s.V, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto p = probabilities(logits + row * a.logits.stride(0), s.V, a.temperature);
      tokens[row] = choose(p, drawn + row * s.V, a.top_p);
    }
  });
}

void sample_tokens_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  const Tensor noise = custom_pypto::call_op<Tensor>(
      "aten::exponential_", "",
      custom_pypto::empty(a.logits.sizes(), custom_pypto::dtype_of<float>, a.logits.device()), 1.0,
      std::nullopt);
  custom_pypto::visit_dtype<float, custom_pypto::BFloat16>(
      Op::name, "logits", a.logits.scalar_type(), [&](auto tag) {
        sample<typename decltype(tag)::type>(a, s, noise, out.tokens.mutable_data_ptr<int64_t>());
      });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Op>().impl<&sample_tokens_cpu>("CPU"); }

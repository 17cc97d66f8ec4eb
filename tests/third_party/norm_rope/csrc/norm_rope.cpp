// The CPU kernels of norm_rope and norm_rope_backward, and their registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ops.h"

namespace {

using custom_pypto::BFloat16;
using custom_pypto::Half;
using torch::stable::Tensor;

// Fewest elements for a thread.
constexpr int64_t kGrain = 4096;

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The heads of a tensor [*tokens, N, D] whose last dim is contiguous.
template <typename T>
class Heads {
 public:
  explicit Heads(const Tensor& x) : x_(x), data_(x.const_data_ptr<T>()) {}

  const T* operator[](int64_t head) const {
    const T* found = data_;
    for (int64_t dim = x_.dim() - 2; dim >= 0; --dim) {
      found += head % x_.size(dim) * x_.stride(dim);
      head /= x_.size(dim);
    }
    return found;
  }

 private:
  const Tensor& x_;
  const T* data_;
};

// The numbers of the small arguments in memory, in the type in which the kernel computes.
template <typename W>
struct Tables {
  std::vector<W> weight;
  std::vector<W> cos;
  std::vector<W> sin;
};

template <typename W, typename Arguments>
Tables<W> tables_of(const Arguments& a) {
  return {custom_pypto::read_floats<W>(a.weight), custom_pypto::read_floats<W>(a.cos),
          custom_pypto::read_floats<W>(a.sin)};
}

template <typename T>
Wide<T> inverse_root_mean_square(const T* x, int64_t size, double eps) {
  Wide<T> sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<Wide<T>>(x[i]) * static_cast<Wide<T>>(x[i]);
  return 1 / std::sqrt(sum / static_cast<Wide<T>>(size) + static_cast<Wide<T>>(eps));
}

template <typename T>
void forward(const ops::norm_rope::Arguments& a, const ops::norm_rope::Sizes& s, const Tensor& to) {
  const auto tables = tables_of<Wide<T>>(a);
  const Heads<T> x(a.x);
  T* out = to.mutable_data_ptr<T>();
  const int64_t half = s.D / 2;
  const int64_t heads = s.D == 0 ? 0 : a.x.numel() / s.D;
  custom_pypto::parallel_for(0, heads, 1 + kGrain / (s.D + 1), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const T* row = x[head];
      T* result = out + head * s.D;
      const Wide<T> scale = inverse_root_mean_square(row, s.D, a.eps);
      const Wide<T>* cos = tables.cos.data() + head / s.N * half;
      const Wide<T>* sin = tables.sin.data() + head / s.N * half;
      for (int64_t i = 0; i < half; ++i) {
        const Wide<T> first = static_cast<Wide<T>>(row[i]) * scale * tables.weight[i];
        const Wide<T> second =
            static_cast<Wide<T>>(row[half + i]) * scale * tables.weight[half + i];
        result[i] = static_cast<T>(first * cos[i] - second * sin[i]);
        result[half + i] = static_cast<T>(second * cos[i] + first * sin[i]);
      }
    }
  });
}

template <typename T>
void backward(const ops::norm_rope_backward::Arguments& a, const ops::norm_rope_backward::Sizes& s,
              const ops::norm_rope_backward::Outputs& to) {
  const auto tables = tables_of<Wide<T>>(a);
  const Tensor grads = custom_pypto::to_contiguous(a.grad);
  const T* grad = grads.const_data_ptr<T>();
  const Heads<T> x(a.x);
  T* grad_x = to.grad_x.mutable_data_ptr<T>();
  T* grad_weight = to.grad_weight.mutable_data_ptr<T>();
  const int64_t half = s.D / 2;
  const int64_t heads = s.D == 0 ? 0 : a.x.numel() / s.D;
  std::vector<Wide<T>> scales(static_cast<std::size_t>(heads));
  // The gradient of the normalised and weighted head: the rotation back.
  const auto unrotated = [&](int64_t head, int64_t i) {
    const T* row = grad + head * s.D;
    const int64_t column = i % half;
    const Wide<T> cos = tables.cos[head / s.N * half + column];
    const Wide<T> sin = tables.sin[head / s.N * half + column];
    const auto first = static_cast<Wide<T>>(row[column]);
    const auto second = static_cast<Wide<T>>(row[half + column]);
    return i < half ? first * cos + second * sin : second * cos - first * sin;
  };
  custom_pypto::parallel_for(0, heads, 1 + kGrain / (s.D + 1), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const T* row = x[head];
      const Wide<T> scale = inverse_root_mean_square(row, s.D, a.eps);
      Wide<T> product = 0;
      for (int64_t i = 0; i < s.D; ++i) {
        product += unrotated(head, i) * tables.weight[i] * static_cast<Wide<T>>(row[i]);
      }
      product *= scale * scale / static_cast<Wide<T>>(s.D);
      for (int64_t i = 0; i < s.D; ++i) {
        const Wide<T> direct = unrotated(head, i) * tables.weight[i];
        grad_x[head * s.D + i] =
            static_cast<T>(scale * (direct - static_cast<Wide<T>>(row[i]) * product));
      }
      scales[head] = scale;
    }
  });
  custom_pypto::parallel_for(0, s.D, 1 + kGrain / (heads + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t head = 0; head < heads; ++head) {
        sum += unrotated(head, i) * static_cast<Wide<T>>(x[head][i]) * scales[head];
      }
      grad_weight[i] = static_cast<T>(sum);
    }
  });
}

void norm_rope_cpu(const ops::norm_rope::Arguments& a, const ops::norm_rope::Sizes& s,
                   const ops::norm_rope::Outputs& out) {
  custom_pypto::visit_dtype<float, double, Half, BFloat16>(
      ops::norm_rope::name, "x", a.x.scalar_type(),
      [&](auto tag) { forward<typename decltype(tag)::type>(a, s, out.result); });
}

void norm_rope_backward_cpu(const ops::norm_rope_backward::Arguments& a,
                            const ops::norm_rope_backward::Sizes& s,
                            const ops::norm_rope_backward::Outputs& out) {
  custom_pypto::visit_dtype<float, double, Half, BFloat16>(
      ops::norm_rope_backward::name, "x", a.x.scalar_type(),
      [&](auto tag) { backward<typename decltype(tag)::type>(a, s, out); });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::norm_rope>().impl<&norm_rope_cpu>("CPU");
  plugin.def<ops::norm_rope_backward>().impl<&norm_rope_backward_cpu>("CPU");
}

#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/plugin.h>

#include <cstdint>
#include <type_traits>

namespace {

using torch::stable::Tensor;

// Elements that are worth a thread of their own.
constexpr int64_t grain = 32768;

template <typename T>
void scale_shift(const T* in, T* out, int64_t count, double scale, double shift) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto a = static_cast<Wide>(scale);
  const auto b = static_cast<Wide>(shift);
  custom_pypto::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = static_cast<T>(static_cast<Wide>(in[i]) * a + b);
    }
  });
}

Tensor scale_shift_cpu(const Tensor& self, double scale, double shift) {
  const Tensor in = self.is_contiguous() ? self : torch::stable::contiguous(self);
  Tensor out = custom_pypto::empty_like_contiguous(in);
  custom_pypto::visit_dtype<float, double, custom_pypto::Half, custom_pypto::BFloat16>(
      "scale_shift", "self", in.scalar_type(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        scale_shift(in.const_data_ptr<T>(), out.mutable_data_ptr<T>(), in.numel(), scale, shift);
      });
  return out;
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("scale_shift(Tensor self, float scale, float shift) -> Tensor"))
      .impl<&scale_shift_cpu>("CPU");
}

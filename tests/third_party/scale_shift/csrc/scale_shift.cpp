// The CPU kernel of scale_shift, and its registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto_blocks/elementwise.h>

#include <cstdint>
#include <type_traits>

#include "ops.h"

namespace {

using custom_pypto::BFloat16;
using custom_pypto::Half;
using Op = ops::scale_shift;

template <typename T>
void scale_shift(const void* self, void* out, int64_t count, double scale, double shift) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto a = static_cast<Wide>(scale);
  const auto b = static_cast<Wide>(shift);
  const T* x = static_cast<const T*>(self);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(static_cast<Wide>(x[i]) * a + b);
}

void scale_shift_cpu(const Op::Arguments& a, const Op::CallShape&, const Op::Outputs& out) {
  custom_pypto::visit_dtype<float, double, Half, BFloat16>(
      Op::name, "self", a.self.scalar_type(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        custom_pypto::elementwise(
            [&](const void* self, void* result, int64_t count) {
              scale_shift<T>(self, result, count, a.scale, a.shift);
            },
            out.result, a.self);
      });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Op>().impl<&scale_shift_cpu>("CPU"); }

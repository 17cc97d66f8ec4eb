#include "add.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "grid.h"

namespace cpu {
namespace {

using custom_pypto::BFloat16;
using custom_pypto::Half;
using torch::stable::Tensor;

// Elements that are worth a thread of their own; the same as ATen's own elementwise loops.
constexpr int64_t kGrain = 32768;

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Wraps on overflow, as torch does; signed overflow would be undefined.
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
  } else {
    return a + b;
  }
}

template <class T>
void add_row(const T* self, int64_t self_step, const T* other, int64_t other_step, T* out,
             int64_t count) {
  if (self_step == 1 && other_step == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = sum(self[i], other[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = sum(self[i * self_step], other[i * other_step]);
  }
}

template <class T>
void add_contiguous(const T* self, const T* other, T* out, int64_t count) {
  custom_pypto::parallel_for(0, count, kGrain, [=](int64_t begin, int64_t end) {
    add_row(self + begin, 1, other + begin, 1, out + begin, end - begin);
  });
}

template <class T>
void add_strided(const T* self, const T* other, T* out, const Grid& grid) {
  const int64_t grain = std::max<int64_t>(1, kGrain / Grid::kTileElements);
  custom_pypto::parallel_for(0, grid.tiles(), grain, [=, &grid](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const Tile tile = grid.tile(index);
      for (int64_t row = 0; row < tile.rows; ++row) {
        add_row(self + tile.self + row * grid.row().self, grid.column().self,
                other + tile.other + row * grid.row().other, grid.column().other,
                out + tile.out + row * grid.column().size, tile.columns);
      }
    }
  });
}

template <class T>
void add_as(const Tensor& self, const Tensor& other, const Tensor& out) {
  const T* self_data = static_cast<const T*>(self.const_data_ptr());
  const T* other_data = static_cast<const T*>(other.const_data_ptr());
  T* out_data = static_cast<T*>(out.mutable_data_ptr());
  if (self.is_contiguous() && other.is_contiguous()) {
    add_contiguous(self_data, other_data, out_data, out.numel());
  } else {
    add_strided(self_data, other_data, out_data,
                Grid(out.sizes(), self.strides(), other.strides()));
  }
}

}  // namespace

void add(const Tensor& self, const Tensor& other, const Tensor& out) {
  custom_pypto::visit_dtype<Half, BFloat16, float, double, int32_t, int64_t>(
      "add_custom", "self", self.scalar_type(),
      [&](auto tag) { add_as<typename decltype(tag)::type>(self, other, out); });
}

}  // namespace cpu

#include "add.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cstdint>

#include "grid.h"
#include "kernel_choice.h"

namespace custom_pypto_add_custom {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Elements that are worth a thread of their own; as many as in ATen's own elementwise loops.
constexpr int64_t kGrain = 32768;

AddRow* row_kernel(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Half:
      return kernels().f16;
    case ScalarType::BFloat16:
      return kernels().bf16;
    case ScalarType::Float:
      return kernels().f32;
    case ScalarType::Double:
      return kernels().f64;
    case ScalarType::Int:
      return kernels().i32;
    case ScalarType::Long:
      return kernels().i64;
    default:
      custom_pypto::fail("add_custom", "self", "has no CPU kernel for ", dtype);
  }
}

// The memory of a tensor's elements.
template <class Byte>
struct Elements {
  Byte* first;
  int64_t size;

  Byte* at(int64_t index) const { return first + index * size; }
};

struct Operands {
  Elements<const char> self;
  Elements<const char> other;
  Elements<char> out;
};

void add_contiguous(AddRow* add_row, const Operands& of, int64_t count) {
  custom_pypto::parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    add_row(of.self.at(begin), 1, of.other.at(begin), 1, of.out.at(begin), end - begin);
  });
}

void add_strided(AddRow* add_row, const Operands& of, const Grid& grid) {
  const int64_t grain = std::max<int64_t>(1, kGrain / Grid::kTileElements);
  custom_pypto::parallel_for(0, grid.tiles(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const Tile tile = grid.tile(index);
      for (int64_t row = 0; row < tile.rows; ++row) {
        add_row(of.self.at(tile.self + row * grid.row().self), grid.column().self,
                of.other.at(tile.other + row * grid.row().other), grid.column().other,
                of.out.at(tile.out + row * grid.column().size), tile.columns);
      }
    }
  });
}

}  // namespace

void add_cpu(const Tensor& self, const Tensor& other, const Tensor& out) {
  const ScalarType dtype = self.scalar_type();
  const auto size = static_cast<int64_t>(custom_pypto::dtype_size(dtype));
  const Operands operands{{static_cast<const char*>(self.const_data_ptr()), size},
                          {static_cast<const char*>(other.const_data_ptr()), size},
                          {static_cast<char*>(out.mutable_data_ptr()), size}};
  if (self.is_contiguous() && other.is_contiguous()) {
    add_contiguous(row_kernel(dtype), operands, out.numel());
  } else {
    add_strided(row_kernel(dtype), operands, Grid(out.sizes(), self.strides(), other.strides()));
  }
}

}  // namespace custom_pypto_add_custom

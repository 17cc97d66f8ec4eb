#include "add.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "grid.h"
#include "kernels.h"
#include "turn.h"

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

// A part of an input as a tile walks it; steps are in elements.
struct View {
  const char* first;
  int64_t row;
  int64_t column;

  // Neighbours along a column are nearer in memory than those along a row. Such a line is read to
  // its end by walking columns only: by rows, it may be evicted before its next element's turn, as
  // lines at a power of two from each other compete for the same few places of a cache.
  bool lies_in_columns() const { return row != 0 && std::abs(row) < std::abs(column); }
};

// One thread's sums of tiles.
class TileSum {
 public:
  TileSum(AddRow* add_row, int64_t size) : add_row_(add_row), size_(size) {}

  // Writes tile.rows rows to `out`, each `out_row` elements after the one before.
  void write(const Tile& tile, View self, View other, char* out, int64_t out_row) {
    if (self.lies_in_columns() && other.lies_in_columns()) {
      for (int64_t column = 0; column < tile.columns; ++column) {
        add_row_(self.first + column * self.column * size_, self.row,
                 other.first + column * other.column * size_, other.row,
                 turned_ + column * tile.rows * size_, tile.rows);
      }
      turn_rows(turned_, 1, tile.rows, out, out_row, tile.rows, tile.columns, size_);
      return;
    }
    if (self.lies_in_columns()) self = turn(tile, self);
    if (other.lies_in_columns()) other = turn(tile, other);
    for (int64_t row = 0; row < tile.rows; ++row) {
      add_row_(self.first + row * self.row * size_, self.column,
               other.first + row * other.row * size_, other.column, out + row * out_row * size_,
               tile.columns);
    }
  }

 private:
  View turn(const Tile& tile, const View& from) {
    turn_columns(from.first, from.row, from.column, turned_, tile.columns, tile.rows, tile.columns,
                 size_);
    return {turned_, tile.columns, 1};
  }

  AddRow* const add_row_;
  const int64_t size_;
  alignas(64) char turned_[Grid::kTileElements * sizeof(int64_t)];
};

void add_strided(AddRow* add_row, const Operands& of, const Grid& grid) {
  const int64_t grain = std::max<int64_t>(1, kGrain / Grid::kTileElements);
  custom_pypto::parallel_for(0, grid.tiles(), grain, [&](int64_t begin, int64_t end) {
    TileSum sum(add_row, of.out.size);
    for (int64_t index = begin; index < end; ++index) {
      const Tile tile = grid.tile(index);
      sum.write(tile, {of.self.at(tile.self), grid.row().self, grid.column().self},
                {of.other.at(tile.other), grid.row().other, grid.column().other},
                of.out.at(tile.out), grid.column().size);
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

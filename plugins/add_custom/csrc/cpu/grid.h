#pragma once

#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace custom_pypto_add_custom {

// A dimension that two strided inputs walk together: its size, and the step of each, in elements.
struct Axis {
  int64_t size;
  int64_t self;
  int64_t other;
};

// A rectangle of the grid: its extent, and where it starts in the inputs and the contiguous result.
struct Tile {
  int64_t rows;
  int64_t columns;
  int64_t self;
  int64_t other;
  int64_t out;
};

// The iteration space of two strided inputs and a contiguous result of the same shape, cut into
// tiles of its last two axes. Dimensions that both inputs walk as one are one axis. A tile fits the
// cache nearest to the core.
class Grid {
 public:
  static constexpr int64_t kTileRows = 64;
  static constexpr int64_t kTileColumns = 64;
  static constexpr int64_t kTileElements = kTileRows * kTileColumns;

  using Sizes = torch::headeronly::IntHeaderOnlyArrayRef;

  Grid(Sizes sizes, Sizes self_strides, Sizes other_strides);

  int64_t tiles() const { return tiles_; }
  Tile tile(int64_t index) const;

  const Axis& row() const { return axes_[1]; }
  const Axis& column() const { return axes_[0]; }

 private:
  // As many dimensions as torch allows, and no allocation.
  std::array<Axis, 64> axes_;  // innermost first
  std::size_t rank_ = 0;       // at least two once built
  int64_t row_tiles_;
  int64_t column_tiles_;
  int64_t tiles_;
};

}  // namespace custom_pypto_add_custom

#pragma once

#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

#include <cstdint>
#include <vector>

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
// tiles of its last two axes. Dimensions that both inputs walk as one are one axis. A tile is small
// enough for the cache to keep the lines of a transposed input until all of each has been used.
class Grid {
 public:
  static constexpr int64_t kTileRows = 32;
  static constexpr int64_t kTileColumns = 128;
  static constexpr int64_t kTileElements = kTileRows * kTileColumns;

  using Sizes = torch::headeronly::IntHeaderOnlyArrayRef;

  Grid(Sizes sizes, Sizes self_strides, Sizes other_strides);

  int64_t tiles() const { return tiles_; }
  Tile tile(int64_t index) const;

  const Axis& row() const { return axes_[1]; }
  const Axis& column() const { return axes_[0]; }

 private:
  std::vector<Axis> axes_;  // innermost first, at least two
  int64_t row_tiles_;
  int64_t column_tiles_;
  int64_t tiles_;
};

}  // namespace custom_pypto_add_custom

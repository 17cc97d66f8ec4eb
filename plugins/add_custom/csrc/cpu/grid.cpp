#include "grid.h"

#include <algorithm>
#include <cstddef>

namespace custom_pypto_add_custom {
namespace {

int64_t pieces(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

bool continues(const Axis& inner, int64_t self_stride, int64_t other_stride) {
  return self_stride == inner.size * inner.self && other_stride == inner.size * inner.other;
}

}  // namespace

Grid::Grid(Sizes sizes, Sizes self_strides, Sizes other_strides) {
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (sizes[dim] == 1) continue;
    if (rank_ > 0 && continues(axes_[rank_ - 1], self_strides[dim], other_strides[dim])) {
      axes_[rank_ - 1].size *= sizes[dim];
    } else {
      axes_.at(rank_++) = {sizes[dim], self_strides[dim], other_strides[dim]};
    }
  }
  while (rank_ < 2) axes_[rank_++] = {1, 0, 0};
  row_tiles_ = pieces(row().size, kTileRows);
  column_tiles_ = pieces(column().size, kTileColumns);
  tiles_ = row_tiles_ * column_tiles_;
  for (size_t axis = 2; axis < rank_; ++axis) tiles_ *= axes_[axis].size;
}

Tile Grid::tile(int64_t index) const {
  const int64_t first_column = index % column_tiles_ * kTileColumns;
  index /= column_tiles_;
  const int64_t first_row = index % row_tiles_ * kTileRows;
  index /= row_tiles_;
  Tile tile{std::min(kTileRows, row().size - first_row),
            std::min(kTileColumns, column().size - first_column),
            first_row * row().self + first_column * column().self,
            first_row * row().other + first_column * column().other,
            (index * row().size + first_row) * column().size + first_column};
  for (size_t axis = 2; axis < rank_; ++axis) {
    const int64_t position = index % axes_[axis].size;
    index /= axes_[axis].size;
    tile.self += position * axes_[axis].self;
    tile.other += position * axes_[axis].other;
  }
  return tile;
}

}  // namespace custom_pypto_add_custom

// elementwise: runs a kernel for dense rows on strided inputs and a contiguous output.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>

CUSTOM_PYPTO_NAMESPACE_BEGIN

namespace detail {

// Fewest elements for a thread, as in ATen's elementwise loops.
constexpr int64_t kElementwiseGrain = 32768;
// Rows and columns of a tile, which fits the L1 cache.
constexpr int64_t kTile = 64;

// Elements are copied as integers of their size.
template <std::size_t size>
struct alignas(size) Bits {
  char bytes[size];
};

// The part of an input in one tile; strides are in elements.
template <class Element>
struct TileView {
  const Element* first;
  int64_t row;
  int64_t column;

  bool has_dense_rows() const { return column == 1; }
  bool has_dense_columns() const { return row == 1; }

  // Copies the tile so that its rows are dense. Column-major memory is read column by column, so
  // that reads are sequential: row by row, a cache line could be evicted before its next element is
  // read, as lines that are a power of two apart share a cache set.
  TileView dense(int64_t rows, int64_t columns, Element* to) const {
    if (row != 0 && std::abs(row) < std::abs(column)) {
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) to[r * kTile + c] = first[r * row + c * column];
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        const Element* from = first + r * row;
        Element* dense = to + r * kTile;
        if (column == 0) {
          std::fill(dense, dense + columns, *from);
        } else {
          for (int64_t c = 0; c < columns; ++c) dense[c] = from[c * column];
        }
      }
    }
    return {to, kTile, 1};
  }
};

// A dimension of the iteration space: its size, and the stride of each input in elements.
template <std::size_t inputs>
struct Axis {
  int64_t size;
  std::array<int64_t, inputs> steps;
};

// The iteration space of all inputs, cut into tiles of the last two axes. Dimensions that are
// contiguous in every input are merged into one axis.
template <class Element, std::size_t inputs>
class StridedTiles {
 public:
  using Pointers = std::array<const Element*, inputs>;

  StridedTiles(const Tensor& out, const std::array<const Tensor*, inputs>& tensors) {
    const auto sizes = out.sizes();
    for (std::size_t dim = sizes.size(); dim-- > 0;) {
      if (sizes[dim] == 1) continue;
      Axis<inputs> axis{sizes[dim], {}};
      for (std::size_t i = 0; i < inputs; ++i) {
        axis.steps[i] = tensors[i]->stride(static_cast<int64_t>(dim));
      }
      if (ndim_ > 0 && continues(axes_[ndim_ - 1], axis)) {
        axes_[ndim_ - 1].size *= axis.size;
      } else {
        axes_.at(ndim_++) = axis;
      }
    }
    while (ndim_ < 2) axes_[ndim_++] = {1, {}};
    row_tiles_ = (axes_[1].size + kTile - 1) / kTile;
    column_tiles_ = (axes_[0].size + kTile - 1) / kTile;
  }

  int64_t count() const {
    int64_t tiles = row_tiles_ * column_tiles_;
    for (std::size_t axis = 2; axis < ndim_; ++axis) tiles *= axes_[axis].size;
    return tiles;
  }

  // Runs `f` on the tile with this index.
  template <class F>
  void run(int64_t index, const F& f, Pointers in, Element* out) const {
    const auto& [width, across] = axes_[0];
    const auto& [height, down] = axes_[1];
    const int64_t column = index % column_tiles_ * kTile;
    index /= column_tiles_;
    const int64_t row = index % row_tiles_ * kTile;
    index /= row_tiles_;
    out += (index * height + row) * width + column;
    for (std::size_t i = 0; i < inputs; ++i) in[i] += row * down[i] + column * across[i];
    for (std::size_t axis = 2; axis < ndim_; ++axis) {
      const int64_t position = index % axes_[axis].size;
      index /= axes_[axis].size;
      for (std::size_t i = 0; i < inputs; ++i) in[i] += position * axes_[axis].steps[i];
    }
    std::array<TileView<Element>, inputs> views;
    for (std::size_t i = 0; i < inputs; ++i) views[i] = {in[i], down[i], across[i]};
    run(views, std::min(kTile, height - row), std::min(kTile, width - column), f, out, width);
  }

 private:
  static bool continues(const Axis<inputs>& inner, const Axis<inputs>& outer) {
    for (std::size_t i = 0; i < inputs; ++i) {
      if (outer.steps[i] != inner.size * inner.steps[i]) return false;
    }
    return true;
  }

  template <class F>
  static void run(std::array<TileView<Element>, inputs>& views, int64_t rows, int64_t columns,
                  const F& f, Element* out, int64_t out_row) {
    Element copies[inputs][kTile * kTile];
    if (std::all_of(views.begin(), views.end(), [](auto& v) { return v.has_dense_columns(); })) {
      for (int64_t c = 0; c < columns; ++c) {
        call(f, views, 0, c, copies[0] + c * kTile, rows);
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) out[r * out_row + c] = copies[0][c * kTile + r];
      }
      return;
    }
    for (std::size_t i = 0; i < inputs; ++i) {
      if (!views[i].has_dense_rows()) views[i] = views[i].dense(rows, columns, copies[i]);
    }
    for (int64_t r = 0; r < rows; ++r) call(f, views, r, 0, out + r * out_row, columns);
  }

  template <class F>
  static void call(const F& f, const std::array<TileView<Element>, inputs>& views, int64_t row,
                   int64_t column, Element* out, int64_t count) {
    std::apply(
        [&](const auto&... view) {
          f((view.first + row * view.row + column * view.column)..., out, count);
        },
        views);
  }

  // Innermost first. As many as torch allows, so that nothing is allocated.
  std::array<Axis<inputs>, 64> axes_;
  std::size_t ndim_ = 0;
  int64_t row_tiles_;
  int64_t column_tiles_;
};

template <std::size_t size, class F, class... Inputs>
void elementwise_of_size(const F& f, const Tensor& out, const Inputs&... inputs) {
  using Element = Bits<size>;
  auto* to = static_cast<Element*>(out.mutable_data_ptr());
  const std::array in{static_cast<const Element*>(inputs.const_data_ptr())...};
  if ((inputs.is_contiguous() && ...)) {
    parallel_for(0, out.numel(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
      std::apply([&](auto... from) { f((from + begin)..., to + begin, end - begin); }, in);
    });
    return;
  }
  const StridedTiles<Element, sizeof...(Inputs)> tiles(out, {&inputs...});
  const int64_t grain = kElementwiseGrain / (kTile * kTile);
  parallel_for(0, tiles.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) tiles.run(index, f, in, to);
  });
}

}  // namespace detail

// Calls f(inputs..., out, count) on runs of `count` dense elements, which together are all of
// `out`, from several threads; its pointers are void*. `out` is contiguous; the inputs have its
// shape, its element size (1, 2, 4 or 8 bytes), any strides, and may overlap themselves. Inputs
// that are not dense are copied tile by tile.
template <class F, class... Inputs>
void elementwise(const F& f, const Tensor& out, const Inputs&... inputs) {
  switch (dtype_size(out.scalar_type())) {
    case 1:
      return detail::elementwise_of_size<1>(f, out, inputs...);
    case 2:
      return detail::elementwise_of_size<2>(f, out, inputs...);
    case 4:
      return detail::elementwise_of_size<4>(f, out, inputs...);
    default:
      return detail::elementwise_of_size<8>(f, out, inputs...);
  }
}

CUSTOM_PYPTO_NAMESPACE_END

// Products with the weights of linear layers: a dot product for each pair of a row and a weight's
// row, whose numbers are contiguous.
//
// A sum has the same bits whatever rows and weights share its tile: it is the sum over the lanes of
// one vector, which is accumulated from the first number to the last.
#pragma once

#include <custom_pypto_blocks/divide.h>

#include "linear_task.h"
#include "unroll.h"
#include "widen.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// The sums of a tile fill the registers, with a vector of each weight and one of a row.
inline constexpr int kTileOfRows = kTileVectors > 2 ? 6 : 3;
inline constexpr int kTileOfWeights = 4;
// Up to this number of rows, each tile widens the weights. With more rows, the first tile keeps the
// widened weights for the others.
inline constexpr int64_t kMostRowsWidening = kTileVectors > 2 ? 2 * kTileOfRows : kTileOfRows + 1;
// The numbers of each weight that are kept. With those of a tile of rows they fit the L1 cache.
inline constexpr int64_t kKept = 64 * kLanes;
// Rows are an odd number of cache lines apart, and so are weights: at distances of a power of two
// they would share a few sets of the cache.
constexpr int64_t stride_of(int64_t depth) { return (divide_up(depth, 16) | 1) * 16; }
inline constexpr int64_t kKeptStride = stride_of(kKept);
// How far ahead weights are prefetched.
inline constexpr int64_t kBytesAhead = 1024;

enum class Weights { where_they_are, to_keep, kept };

// sums[r][w] += the dot product of `depth` numbers; the first ones set it. Rows are widened, and
// filled up with zeros. Prefetches numbers of kNext weights, `stride` apart as the weights are.
template <int kRows, int kWeights, Weights kFrom, int kNext, class Element>
void multiply_rows(const float* rows, int64_t row_stride, const Element* weights, int64_t stride,
                   int64_t depth, float* kept, const Element* next, bool is_first, float* to) {
  F32 sums[kRows][kWeights];
  const auto each = [&](const auto& f) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int at = i / kWeights * kTileOfWeights + i % kWeights;
      f(sums[i / kWeights][i % kWeights], to + at * kLanes);
    });
  };
  const auto add = [&](int64_t k, const auto* from, int64_t distance) CUSTOM_PYPTO_INLINE_LAMBDA {
    F32 of_weight[kWeights];
    unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      of_weight[w] = load(from + w * distance);
      if constexpr (kFrom == Weights::to_keep) store(kept + w * kKeptStride + k, of_weight[w]);
    });
    unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
      const F32 of_row = load(rows + r * row_stride + k);
      unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
        sums[r][w] = multiply_add(of_row, of_weight[w], sums[r][w]);
      });
    });
  };
  const auto prefetch = [&](int64_t k) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kNext>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      __builtin_prefetch(next + w * stride + k, 0, kNext == kWeights ? 3 : 2);
    });
  };
  each([&](F32& sum, const float* from)
           CUSTOM_PYPTO_INLINE_LAMBDA { sum = is_first ? zero() : load(from); });
  if constexpr (kFrom == Weights::kept) {
    for (int64_t k = 0; k < depth; k += kLanes) {
      add(k, kept + k, kKeptStride);
      prefetch(k);
    }
  } else {
    int64_t k = 0;
    for (; k + kLanes <= depth; k += kLanes) {
      add(k, weights + k, stride);
      prefetch(k);
    }
    if (k < depth) {  // zeros behind the last numbers
      Element last[kWeights * kLanes] = {};
      for (int w = 0; w < kWeights; ++w) {
        __builtin_memcpy(last + w * kLanes, weights + w * stride + k,
                         static_cast<size_t>(depth - k) * sizeof(Element));
      }
      add(k, last, kLanes);
    }
  }
  each([](const F32& sum, float* at) CUSTOM_PYPTO_INLINE_LAMBDA { store(at, sum); });
}

template <class Element, class Out>
class Linear {
 public:
  static int64_t scratch_bytes(int64_t depth, int64_t count) {
    return (count * (stride_of(depth) + kTileOfWeights * kLanes) + kTileOfWeights * kKeptStride) *
           static_cast<int64_t>(sizeof(float));
  }

  static void run(const LinearTask& task) {
    const Linear product(task);
    for (int64_t row = 0; row < task.count; ++row) {
      float* const to = product.rows_ + row * product.stride_;
      widen(static_cast<const Element*>(task.rows) + row * task.depth, 1, task.depth, to);
      for (int64_t k = task.depth; k % kLanes != 0; ++k) to[k] = 0.0f;
    }
    int64_t column = task.first;
    if constexpr (kTileOfRows == 3) {
      if (task.count == 3) column = product.multiply_as_one_tile<3>(column);
      if (task.count == 4) column = product.multiply_as_one_tile<4>(column);
    }
    for (; column + kTileOfWeights <= task.last; column += kTileOfWeights) {
      product.multiply<kTileOfWeights>(column);
    }
    for (; column < task.last; ++column) product.multiply<1>(column);
  }

 private:
  static constexpr int64_t kAhead = kBytesAhead / static_cast<int64_t>(sizeof(Element));

  explicit Linear(const LinearTask& task)
      : task_(task),
        depth_(task.depth),
        tiles_(divide_up(task.count, kTileOfRows)),
        small_tile_(task.count / tiles_),
        large_tiles_(task.count % tiles_),
        stride_(stride_of(task.depth)),
        sums_(reinterpret_cast<float*>(task.scratch)),
        kept_(sums_ + task.count * kTileOfWeights * kLanes),
        rows_(kept_ + kTileOfWeights * kKeptStride) {}

  // With one weight less, 16 registers hold the sums and widened weights of kRows rows. Returns the
  // next column.
  template <int kRows>
  int64_t multiply_as_one_tile(int64_t column) const {
    constexpr int kWeights = kTileOfWeights - 1;
    for (; column + kWeights <= task_.last; column += kWeights) {
      const auto* weights = static_cast<const Element*>(task_.weight) + column * depth_;
      multiply_rows<kRows, kWeights, Weights::where_they_are, kWeights>(
          rows_, stride_, weights, depth_, depth_, kept_, weights + kAhead, true, sums_);
      write<kWeights>(column);
    }
    return column;
  }

  // Columns [column, column + kWeights) of the result.
  template <int kWeights>
  void multiply(int64_t column) const {
    const auto* weights = static_cast<const Element*>(task_.weight) + column * depth_;
    if (task_.count <= kMostRowsWidening) {
      multiply_tile<kWeights, Weights::where_they_are, kWeights>(0, 0, depth_, weights,
                                                                 weights + kAhead);
      for (int64_t tile = 1; tile < tiles_; ++tile) {
        multiply_tile<kWeights, Weights::where_they_are, 0>(tile, 0, depth_, weights, weights);
      }
    } else {
      int64_t k = 0;
      do {
        const int64_t depth = depth_ - k < kKept ? depth_ - k : kKept;
        const Element* const next =
            k + depth < depth_ ? weights + k + depth : weights + kTileOfWeights * depth_;
        // Each tile prefetches half of the next weights.
        constexpr int kNext = (kWeights + 1) / 2;
        multiply_tile<kWeights, Weights::to_keep, kNext>(0, k, depth, weights + k, next);
        for (int64_t tile = 1; tile < tiles_; ++tile) {
          multiply_tile<kWeights, Weights::kept, kNext>(tile, k, depth, weights + k,
                                                        next + tile % 2 * kNext * depth_);
        }
        k += kKept;
      } while (k < depth_);
    }
    write<kWeights>(column);
  }

  // The numbers [k, k + depth) of a tile of rows and of weights.
  template <int kWeights, Weights kFrom, int kNext, int kRows = kTileOfRows>
  void multiply_tile(int64_t tile, int64_t k, int64_t depth, const Element* weights,
                     const Element* next) const {
    if constexpr (kRows > 1) {
      if (small_tile_ + (tile < large_tiles_) < kRows) {
        return multiply_tile<kWeights, kFrom, kNext, kRows - 1>(tile, k, depth, weights, next);
      }
    }
    const int64_t first = tile * small_tile_ + (tile < large_tiles_ ? tile : large_tiles_);
    multiply_rows<kRows, kWeights, kFrom, kNext>(rows_ + first * stride_ + k, stride_, weights,
                                                 depth_, depth, kept_, next, k == 0,
                                                 sums_ + first * kTileOfWeights * kLanes);
  }

  template <int kWeights>
  void write(int64_t column) const {
    const auto* bias = static_cast<const Element*>(task_.bias);
    auto* out = static_cast<Out*>(task_.out) + column;
    const float* from = sums_;
    for (int64_t row = 0; row < task_.count; ++row, from += kTileOfWeights * kLanes) {
      float sums[kWeights];
      if constexpr (kWeights == 4) {
        reduce_add4(load(from), load(from + kLanes), load(from + 2 * kLanes),
                    load(from + 3 * kLanes), sums);
      } else {
        for (int w = 0; w < kWeights; ++w) sums[w] = reduce_add(load(from + w * kLanes));
      }
      for (int w = 0; w < kWeights; ++w) {
        if (bias != nullptr) sums[w] += to_float(bias[column + w]);
        out[row * task_.out_stride + w] = from_float<Out>(sums[w]);
      }
    }
  }

  const LinearTask& task_;
  int64_t depth_;
  int64_t tiles_;
  int64_t small_tile_;   // rows of a tile: all have about as many
  int64_t large_tiles_;  // the first tiles, which have one row more
  int64_t stride_;
  float* sums_;
  float* kept_;
  float* rows_;
};

template <class Element, class Out>
inline constexpr LinearKernel kLinear = {
    &Linear<Element, Out>::run, &Linear<Element, Out>::scratch_bytes, sizeof(Element), sizeof(Out)};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

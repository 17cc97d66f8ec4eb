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

inline constexpr int kRegisters = kTileVectors > 2 ? 32 : 16;
// The sums of a tile fill the registers, with a vector of each weight and one of a row.
inline constexpr int kTileOfRows = kRegisters > 16 ? 6 : 3;
inline constexpr int kTileOfWeights = 4;
// Up to this number of rows, each tile widens the weights. With more rows, the first tile keeps the
// widened weights for the others.
inline constexpr int64_t kMostRowsWidening = kRegisters > 16 ? 2 * kTileOfRows : kTileOfRows + 1;
// The numbers of each weight that are kept. With those of a tile of rows they fit the L1 cache.
inline constexpr int64_t kKept = 64 * kLanes;
// Rows are an odd number of cache lines apart, and so are weights: at distances of a power of two
// they would share a few sets of the cache.
constexpr int64_t stride_of(int64_t depth) { return (divide_up(depth, 16) | 1) * 16; }
inline constexpr int64_t kKeptStride = stride_of(kKept);
// How far ahead weights are prefetched.
inline constexpr int64_t kBytesAhead = 1024;
// What is added to the place of a prefetch: behind the end of a row, the next tile's row follows.
template <int kWeights>
inline int64_t to_next_tile(int64_t k, int64_t ahead, int64_t row) {
  return k + ahead < row ? 0 : (kWeights - 1) * row;
}
// The most rows that are multiplied at once with weights that are widened in registers.
inline constexpr int kMostInOneTile = 4;
// Columns whose scales are widened together: a multiple of each tile's number of weights.
inline constexpr int64_t kScaledColumns = kRegisters > 16 ? 16 : 12;

// Whether weights are int8 or int4, which have scales.
template <class Weight>
inline constexpr bool kIsScaled = sizeof(Weight) == 1;

// The integers of a byte, and the vectors that kLanes bytes give. Rows have the order of these
// vectors.
template <class Weight>
inline constexpr int kInByte = 1;
template <>
inline constexpr int kInByte<Int4> = 2;
template <class Weight>
inline constexpr int64_t kStep = kInByte<Weight> * kLanes;

// load(p, x) gives integer * scale + shift of kStep integers.
template <class Integer>
struct Numbers {
  F32 scales, shifts;
  Numbers() = default;
  Numbers(float scale, float shift) : scales(broadcast(scale)), shifts(broadcast(shift)) {}
  inline void load(const Integer* p, F32 (&x)[1]) const {
    x[0] = multiply_add(CUSTOM_PYPTO_CPU_ISA::load(p), scales, shifts);
  }
};
template <>
struct Numbers<Int4> : Int4Numbers {
  using Int4Numbers::Int4Numbers;
};

enum class Weights { where_they_are, to_keep, kept };

// sums[r][w] += the dot product of `depth` numbers; the first ones set it. Rows are widened, and
// filled up with zeros. Prefetches numbers of kNext weights, `stride` apart as the weights are.
template <int kRows, int kWeights, Weights kFrom, int kNext, class Weight, class Next>
void multiply_rows(const float* rows, int64_t row_stride, const Weight* weights, int64_t stride,
                   int64_t depth, float* kept, const Next* next, bool is_first, float* to) {
  // All weights at once, if the registers hold them, the sums and a vector of a row.
  constexpr int kAtOnce = (kRows + 1) * kWeights < kRegisters ? kWeights : 1;
  F32 sums[kRows][kWeights];
  const auto each = [&](const auto& f) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int at = i / kWeights * kTileOfWeights + i % kWeights;
      f(sums[i / kWeights][i % kWeights], to + at * kLanes);
    });
  };
  const auto add = [&](int64_t k, const auto* from, int64_t distance) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kWeights / kAtOnce>([&](int step) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int first = step * kAtOnce;
      F32 of_weight[kAtOnce];
      unroll<kAtOnce>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
        const int w = first + i;
        of_weight[i] = load(from + w * distance);
        if constexpr (kFrom == Weights::to_keep) store(kept + w * kKeptStride + k, of_weight[i]);
      });
      unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
        const F32 of_row = load(rows + r * row_stride + k);
        unroll<kAtOnce>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
          sums[r][first + i] = multiply_add(of_row, of_weight[i], sums[r][first + i]);
        });
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
      prefetch(kFrom == Weights::where_they_are
                   ? k + to_next_tile<kWeights>(k, kBytesAhead / sizeof(Weight), depth)
                   : k);
    }
    if (k < depth) {  // zeros behind the last numbers
      Weight last[kWeights * kLanes] = {};
      for (int w = 0; w < kWeights; ++w) {
        __builtin_memcpy(last + w * kLanes, weights + w * stride + k,
                         static_cast<size_t>(depth - k) * sizeof(Weight));
      }
      add(k, last, kLanes);
    }
  }
  each([](const F32& sum, float* at) CUSTOM_PYPTO_INLINE_LAMBDA { store(at, sum); });
}

// The scales of a tile's weights: from one group to the next they are 2 * kScaledColumns apart, and
// the offsets times the scales are kScaledColumns behind them.
struct Scales {
  const float* at;
  int64_t group;
  int64_t first;  // the numbers of the first group
};

// Gives use(k, x) the numbers x[w] = integer * scale + shift of each weight w, kLanes at k in the
// order of rows, for k < depth. Integers behind the last count as zero.
template <int kWeights, class Integer, class Use>
inline __attribute__((always_inline)) void dequantise(const Integer* integers, int64_t stride,
                                                      int64_t depth, Scales scales,
                                                      const Use& use) {
  constexpr int64_t kUnit = 32;  // groups are multiples of it
  Numbers<Integer> numbers[kWeights];
  const auto give = [&](int64_t k, const Integer* from,
                        int64_t distance) CUSTOM_PYPTO_INLINE_LAMBDA {
    F32 x[kInByte<Integer>][kWeights];
    unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      F32 of_weight[kInByte<Integer>];
      numbers[w].load(from + w * distance, of_weight);
      for (int i = 0; i < kInByte<Integer>; ++i) x[i][w] = of_weight[i];
    });
    unroll<kInByte<Integer>>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA { use(k + i * kLanes, x[i]); });
  };
  const int64_t row = stride / kInByte<Integer>;
  int64_t k = 0;
  int64_t end = scales.first;
  for (;; end += scales.group, scales.at += 2 * kScaledColumns) {
    unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      numbers[w] = Numbers<Integer>(scales.at[w], scales.at[kScaledColumns + w]);
    });
    const int64_t stop = end < depth ? end : depth;
    for (; k + kUnit <= stop; k += kUnit) {
      const Integer* const from = integers + k / kInByte<Integer>;
      const Integer* const next =
          from + kBytesAhead +
          (depth == stride ? to_next_tile<kWeights>(k / kInByte<Integer>, kBytesAhead, row) : 0);
      unroll<kWeights>([&](int w)
                           CUSTOM_PYPTO_INLINE_LAMBDA { __builtin_prefetch(next + w * row); });
      unroll<kUnit / kStep<Integer>>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
        give(k + i * kStep<Integer>, from + i * kLanes, row);
      });
    }
    if (stop == depth) break;
  }
  for (; k < depth; k += kStep<Integer>) {
    const int64_t left = depth - k < kStep<Integer> ? depth - k : kStep<Integer>;
    Integer last[kWeights * kLanes] = {};
    for (int w = 0; w < kWeights; ++w) {
      __builtin_memcpy(last + w * kLanes, integers + w * row + k / kInByte<Integer>,
                       static_cast<size_t>(divide_up(left, kInByte<Integer>)));
    }
    give(k, last, kLanes);
  }
}

// sums[r][w] = the dot product of a row and a weight.
template <int kRows, int kWeights, class Integer>
void multiply_integers(const float* rows, int64_t row_stride, const Integer* integers,
                       int64_t depth, const Scales& scales, float* to) {
  F32 sums[kRows][kWeights];
  const auto each = [&](const auto& f) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      f(sums[i / kWeights][i % kWeights],
        to + (i / kWeights * kTileOfWeights + i % kWeights) * kLanes);
    });
  };
  each([](F32& sum, float*) CUSTOM_PYPTO_INLINE_LAMBDA { sum = zero(); });
  dequantise<kWeights>(integers, depth, depth, scales,
                       [&](int64_t k, const F32(&x)[kWeights]) CUSTOM_PYPTO_INLINE_LAMBDA {
                         unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
                           const F32 of_row = load(rows + r * row_stride + k);
                           unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
                             sums[r][w] = multiply_add(of_row, x[w], sums[r][w]);
                           });
                         });
                       });
  each([](const F32& sum, float* at) CUSTOM_PYPTO_INLINE_LAMBDA { store(at, sum); });
}

template <int kWeights, class Integer>
void keep(const Integer* integers, int64_t stride, int64_t depth, const Scales& scales,
          float* kept) {
  dequantise<kWeights>(integers, stride, depth, scales,
                       [&](int64_t k, const F32(&x)[kWeights]) CUSTOM_PYPTO_INLINE_LAMBDA {
                         unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
                           store(kept + w * kKeptStride + k, x[w]);
                         });
                       });
}

template <class Row, class Out, class Weight>
class Linear {
 public:
  static int64_t scratch_bytes(const LinearTask& task) {
    return (task.count * (row_stride(task) + kTileOfWeights * kLanes) +
            kTileOfWeights * kKeptStride + groups(task) * 2 * kScaledColumns) *
           static_cast<int64_t>(sizeof(float));
  }

  static void run(const LinearTask& task) {
    const Linear product(task);
    for (int64_t row = 0; row < task.count; ++row) {
      float* const to = product.rows_ + row * product.stride_;
      widen(static_cast<const Row*>(task.rows) + row * task.depth, 1, task.depth, to);
      for (int64_t k = task.depth; k % kStep<Weight> != 0; ++k) to[k] = 0.0f;
      if constexpr (kInByte<Weight> == 2) {
        for (int64_t k = 0; k < task.depth; k += 2 * kLanes)
          separate(to + k, IndicesTo<kLanes>::List());
      }
    }
    int64_t column = task.first;
    if constexpr (kIsScaled<Weight>) {
      column = product.template multiply_as_one_tile<1>(column);
    } else if constexpr (kRegisters == 16) {
      // 16 registers hold a whole tile of one or two rows.
      if (task.count >= 3) column = product.template multiply_as_one_tile<3>(column);
    }
    for (; column + kTileOfWeights <= task.last; column += kTileOfWeights) {
      product.multiply_tiles(column);
    }
    for (; column < task.last; ++column) product.multiply_column(column);
  }

 private:
  static int64_t row_stride(const LinearTask& task) {
    return stride_of(divide_up(task.depth, kStep<Weight>) * kStep<Weight>);
  }

  static constexpr int64_t kAhead = kBytesAhead / static_cast<int64_t>(sizeof(Weight));

  // Moves the first of each of kLanes pairs before the second ones.
  template <int... kIndex>
  static void separate(float* pairs, Indices<kIndex...>) {
    const F32 low = load(pairs), high = load(pairs + kLanes);
    store(pairs, __builtin_shufflevector(low, high, (2 * kIndex)...));
    store(pairs + kLanes, __builtin_shufflevector(low, high, (2 * kIndex + 1)...));
  }

  static int64_t groups(const LinearTask& task) {
    return kIsScaled<Weight> ? divide_up(task.depth, task.group) : 0;
  }

  explicit Linear(const LinearTask& task)
      : task_(task),
        depth_(task.depth),
        tiles_(divide_up(task.count, kTileOfRows)),
        small_tile_(task.count / tiles_),
        large_tiles_(task.count % tiles_),
        stride_(row_stride(task)),
        sums_(reinterpret_cast<float*>(task.scratch)),
        kept_(sums_ + task.count * kTileOfWeights * kLanes),
        scales_(kept_ + kTileOfWeights * kKeptStride),
        rows_(scales_ + groups(task) * 2 * kScaledColumns) {}

  // Multiplies kRows to kMostInOneTile rows, and does nothing if there are more. Returns the next
  // column.
  template <int kRows>
  int64_t multiply_as_one_tile(int64_t column) const {
    if (task_.count > kRows) {
      if constexpr (kRows < kMostInOneTile) return multiply_as_one_tile<kRows + 1>(column);
      return column;
    }
    // 16 registers hold the sums, the widened weights and some of their scales. For two or four
    // rows, two weights with scales at a time are fastest.
    constexpr int kFewer = kIsScaled<Weight> && kRows % 2 == 0 ? 2 : 1;
    constexpr int kWeights = kTileOfWeights - (kRegisters == 16 ? kFewer : 0);
    for (; column + kWeights <= task_.last; column += kWeights) {
      const Weight* const weights = weights_of(column);
      if constexpr (kIsScaled<Weight>) {
        multiply_integers<kRows, kWeights>(rows_, stride_, weights, depth_, scales_of(column),
                                           sums_);
      } else {
        multiply_rows<kRows, kWeights, Weights::where_they_are, kWeights>(
            rows_, stride_, weights, depth_, depth_, kept_, weights + kAhead, true, sums_);
      }
      write<kWeights>(column);
    }
    return column;
  }

  // Columns [column, column + kTileOfWeights) of the result.
  void multiply_tiles(int64_t column) const {
    if constexpr (kIsScaled<Weight>) {
      multiply_scaled(column);
    } else {
      multiply_same(column);
    }
    write<kTileOfWeights>(column);
  }

  // A column of the result that has no tile.
  void multiply_column(int64_t column) const {
    for (int64_t row = 0; row < task_.count; ++row) {
      const float* const of_row = rows_ + row * stride_;
      float* const to = sums_ + row * kTileOfWeights * kLanes;
      const Weight* const weights = weights_of(column);
      if constexpr (kIsScaled<Weight>) {
        multiply_integers<1, 1>(of_row, 0, weights, depth_, scales_of(column), to);
      } else {
        multiply_rows<1, 1, Weights::where_they_are, 1>(of_row, 0, weights, depth_, depth_, kept_,
                                                        weights + kAhead, true, to);
      }
    }
    write<1>(column);
  }

  const Weight* weights_of(int64_t column) const {
    return static_cast<const Weight*>(task_.weight) + column * depth_ / kInByte<Weight>;
  }

  void multiply_same(int64_t column) const {
    const Weight* const weights = weights_of(column);
    if (task_.count <= kMostRowsWidening) {
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        multiply_tile<Weights::where_they_are, kTileOfWeights>(tile, 0, depth_, weights,
                                                               weights + kAhead);
      }
      return;
    }
    int64_t k = 0;
    do {
      const int64_t depth = depth_ - k < kKept ? depth_ - k : kKept;
      const Weight* const next =
          k + depth < depth_ ? weights + k + depth : weights + kTileOfWeights * depth_;
      // Each tile prefetches half of the next weights.
      constexpr int kNext = kTileOfWeights / 2;
      multiply_tile<Weights::to_keep, kNext>(0, k, depth, weights + k, next);
      for (int64_t tile = 1; tile < tiles_; ++tile) {
        const float* const kept = kept_;
        multiply_tile<Weights::kept, kNext>(tile, k, depth, kept,
                                            by_size(next + tile % 2 * kNext * depth_));
      }
      k += kKept;
    } while (k < depth_);
  }

  // Numbers of the same size, so that dtypes share the kernels of what is kept.
  static auto by_size(const Weight* weights) {
    if constexpr (sizeof(Weight) == sizeof(int16_t)) {
      return reinterpret_cast<const int16_t*>(weights);
    } else {
      return weights;
    }
  }

  void multiply_scaled(int64_t column) const {
    const Weight* const integers = weights_of(column);
    Scales scales = scales_of(column);
    const float* const at = scales.at;
    int64_t k = 0;
    do {
      const int64_t depth = depth_ - k < kKept ? depth_ - k : kKept;
      scales.at = at + k / task_.group * 2 * kScaledColumns;
      scales.first = task_.group - k % task_.group;
      keep<kTileOfWeights>(integers + k / kInByte<Weight>, depth_, depth, scales, kept_);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        const float* const kept = kept_;
        multiply_tile<Weights::kept, 0>(tile, k, divide_up(depth, kStep<Weight>) * kStep<Weight>,
                                        kept, kept);
      }
      k += kKept;
    } while (k < depth_);
  }

  // The scales from a column on. Columns are visited in order.
  Scales scales_of(int64_t column) const {
    const int64_t scaled = (column - task_.first) % kScaledColumns;
    if (scaled == 0) widen_scales(column);
    return {scales_ + scaled, task_.group, task_.group};
  }

  // The scales of kScaledColumns columns: for each group scales, then offsets times scales.
  void widen_scales(int64_t column) const {
    const int64_t left = task_.last - column;
    const int64_t count = left < kScaledColumns ? left : kScaledColumns;
    float* scale = scales_;
    for (int64_t group = 0; group < groups(task_); ++group, scale += 2 * kScaledColumns) {
      const int64_t at = group * task_.scale_stride + column;
      float* const shift = scale + kScaledColumns;
      widen(static_cast<const Row*>(task_.scale) + at, 1, count, scale);
      for (int64_t i = 0; i < count; ++i) shift[i] = 0.0f;
      if (task_.offset == nullptr) continue;
      widen(static_cast<const Row*>(task_.offset) + at, 1, count, shift);
      for (int64_t i = 0; i < count; ++i) shift[i] *= scale[i];
    }
  }

  // The numbers [k, k + depth) of a tile of rows and of weights.
  template <Weights kFrom, int kNext, int kRows = kTileOfRows, class From, class Next>
  void multiply_tile(int64_t tile, int64_t k, int64_t depth, const From* weights,
                     const Next* next) const {
    // Tiles have about as many rows: where weights are kept, so many at least.
    constexpr int kLeastOfMany = kTileOfRows == 3 ? 2 : kIsScaled<Weight> ? 3 : 4;
    if constexpr (kRows > (kFrom == Weights::where_they_are ? 1 : kLeastOfMany)) {
      if (small_tile_ + (tile < large_tiles_) < kRows) {
        return multiply_tile<kFrom, kNext, kRows - 1>(tile, k, depth, weights, next);
      }
    }
    const int64_t first = tile * small_tile_ + (tile < large_tiles_ ? tile : large_tiles_);
    multiply_rows<kRows, kTileOfWeights, kFrom, kNext>(rows_ + first * stride_ + k, stride_,
                                                       weights, depth_, depth, kept_, next, k == 0,
                                                       sums_ + first * kTileOfWeights * kLanes);
  }

  float bias_of(int64_t column) const {
    if (task_.has_fp32_bias) {
      return static_cast<const float*>(task_.bias)[column];
    }
    return to_float(static_cast<const Row*>(task_.bias)[column]);
  }

  template <int kWeights>
  void write(int64_t column) const {
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
        if (task_.bias != nullptr) sums[w] += bias_of(column + w);
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
  float* scales_;
  float* rows_;
};

template <class Row, class Out, class Weight = Row>
inline constexpr LinearKernel kLinear = {&Linear<Row, Out, Weight>::run,
                                         &Linear<Row, Out, Weight>::scratch_bytes, sizeof(Row),
                                         sizeof(Out)};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

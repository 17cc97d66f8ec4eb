// Products with int8 weights of linear layers, as blocks' cpu/linear.h multiplies: a dot product
// for each pair of a row and a weight's row, whose numbers are contiguous. Sums are int32 and
// exact.
//
// Where the instruction multiplies signed by unsigned numbers, 128 is added to the weights, and 128
// times the sum of a row's numbers is subtracted from its products.
#pragma once

#include <custom_pypto_blocks/cpu/int8_tile.h>
#include <custom_pypto_blocks/divide.h>

#include "int8_linear_task.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// The sums of a tile fill the registers, with a vector of each weight and one of a row.
inline constexpr int kInt8TileOfRows = kTileVectors > 2 ? 6 : 3;
inline constexpr int kInt8TileOfWeights = 4;
// Numbers in a vector.
inline constexpr int64_t kInt8Lanes = sizeof(I32) / sizeof(Int8Stored);
// With more rows than a tile has, the first tile keeps this many numbers of each weight, as they
// are multiplied, for the other tiles. With those of a tile of rows they fit the L1 cache.
inline constexpr int64_t kInt8Kept = 64 * kInt8Lanes;
// Rows are an odd number of cache lines apart, and so are weights: at distances of a power of two
// they would share a few sets of the cache.
constexpr int64_t int8_stride_of(int64_t depth) {
  constexpr int64_t kLine = 64 / sizeof(Int8Stored);
  return (divide_up(depth, kLine) | 1) * kLine;
}
inline constexpr int64_t kInt8KeptStride = int8_stride_of(kInt8Kept);
// How far ahead weights are prefetched.
inline constexpr int64_t kInt8Ahead = 1024;

enum class Int8Weights { where_they_are, to_keep, kept };

// A vector of weights as int8_dot takes them.
inline I32 load_int8_weights(const int8_t* from) {
  if constexpr (kHasInt8Dot) {
    I32 numbers;
    __builtin_memcpy(&numbers, from, sizeof numbers);
    if constexpr (kInt8RowOffset == 0) return numbers;
    return numbers ^ broadcast_int(static_cast<int32_t>(0x80808080u));  // adds 128
  } else {
    typedef int8_t Narrow __attribute__((vector_size(sizeof(I32) / 2)));
    typedef int16_t Wide __attribute__((vector_size(sizeof(I32))));
    Narrow numbers;
    __builtin_memcpy(&numbers, from, sizeof numbers);
    return reinterpret_cast<I32>(__builtin_convertvector(numbers, Wide));
  }
}

inline I32 load_stored(const Int8Stored* from) {
  I32 numbers;
  __builtin_memcpy(&numbers, from, sizeof numbers);
  return numbers;
}

// sums[r][w] += the dot product of `depth` numbers. Rows are stored as they are multiplied, and
// filled up with zeros. Prefetches numbers of kNext weights, `stride` apart as the weights are.
template <int kRows, Int8Weights kFrom, int kNext>
void multiply_int8_rows(const Int8Stored* rows, int64_t row_stride, const int8_t* weights,
                        int64_t stride, int64_t depth, Int8Stored* kept, const int8_t* next,
                        int32_t* to) {
  constexpr int kWeights = kInt8TileOfWeights;
  I32 sums[kRows][kWeights];
  const auto each = [&](const auto& f) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      f(sums[i / kWeights][i % kWeights], to + i * kLanes);
    });
  };
  const auto add = [&](int64_t k, const int8_t* from, int64_t distance) CUSTOM_PYPTO_INLINE_LAMBDA {
    I32 of_row[kRows];
    unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
      of_row[r] = load_stored(rows + r * row_stride + k);
    });
    unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      I32 of_weight;
      if constexpr (kFrom == Int8Weights::kept) {
        of_weight = load_stored(kept + w * kInt8KeptStride + k);
      } else {
        of_weight = load_int8_weights(from + w * distance);
      }
      if constexpr (kFrom == Int8Weights::to_keep) {
        __builtin_memcpy(kept + w * kInt8KeptStride + k, &of_weight, sizeof(I32));
      }
      unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
        sums[r][w] = int8_dot(sums[r][w], of_row[r], of_weight);
      });
    });
  };
  const auto prefetch = [&](int64_t k) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kNext>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      __builtin_prefetch(next + w * stride + k, 0, kNext == kWeights ? 3 : 2);
    });
  };
  each([](I32& sum, const int32_t* from) CUSTOM_PYPTO_INLINE_LAMBDA { sum = load(from); });
  if constexpr (kFrom == Int8Weights::kept) {
    int64_t k = 0;
    do {
      add(k, nullptr, 0);
      prefetch(k);
      k += kInt8Lanes;
    } while (k < depth);
  } else {
    int64_t k = 0;
    for (; k + kInt8Lanes <= depth; k += kInt8Lanes) {
      add(k, weights + k, stride);
      prefetch(k);
    }
    if (k < depth) {  // zeros behind the last numbers
      int8_t last[kWeights * kInt8Lanes] = {};
      for (int w = 0; w < kWeights; ++w) {
        __builtin_memcpy(last + w * kInt8Lanes, weights + w * stride + k,
                         static_cast<size_t>(depth - k));
      }
      add(k, last, kInt8Lanes);
    }
  }
  each([](const I32& sum, int32_t* at) CUSTOM_PYPTO_INLINE_LAMBDA { store(at, sum); });
}

class Int8Products {
 public:
  static int64_t scratch_bytes(const Int8LinearTask& task) {
    const int64_t count = task.count;
    const int64_t integers = count * (kInt8TileOfWeights * kLanes + kFinishedColumns + 1);
    const int64_t stored =
        kInt8TileOfWeights * kInt8KeptStride + count * int8_stride_of(task.depth);
    return (divide_up(integers, 16) * 16) * 4 + stored * static_cast<int64_t>(sizeof(Int8Stored));
  }

  explicit Int8Products(const Int8LinearTask& task)
      : task_(task),
        depth_(task.depth),
        tiles_(divide_up(task.count, kInt8TileOfRows)),
        small_tile_(task.count / tiles_),
        large_tiles_(task.count % tiles_),
        stride_(int8_stride_of(task.depth)),
        sums_(reinterpret_cast<int32_t*>(task.scratch)),
        totals_(sums_ + task.count * kInt8TileOfWeights * kLanes),
        offsets_(totals_ + task.count * kFinishedColumns),
        kept_(reinterpret_cast<Int8Stored*>(sums_ +
                                            divide_up(offsets_ + task.count - sums_, 16) * 16)),
        rows_(kept_ + kInt8TileOfWeights * kInt8KeptStride) {
    for (int64_t row = 0; row < task.count; ++row) {
      const int8_t* const from = static_cast<const int8_t*>(task.rows) + row * depth_;
      Int8Stored* const to = rows_ + row * stride_;
      int32_t sum = 0;
      for (int64_t k = 0; k < depth_; ++k) to[k] = from[k];
      for (int64_t k = depth_; k % kInt8Lanes != 0; ++k) to[k] = 0;
      if constexpr (kInt8RowOffset != 0) {
        for (int64_t k = 0; k < depth_; ++k) sum += from[k];
      }
      offsets_[row] = kInt8RowOffset * sum;
    }
  }

  // The sums of each row and `columns` columns, kFinishedColumns from one row to the next.
  const int32_t* multiply(int64_t column, int64_t columns) const {
    int64_t done = 0;
    for (; done + kInt8TileOfWeights <= columns; done += kInt8TileOfWeights) {
      multiply(column + done, depth_, kInt8TileOfWeights, totals_ + done);
    }
    for (; done < columns; ++done) multiply(column + done, 0, 1, totals_ + done);
    return totals_;
  }

 private:
  // Weights are `stride` apart: 0 where a column is alone, as if its weight were several.
  void multiply(int64_t column, int64_t stride, int columns, int32_t* totals) const {
    const int8_t* const weights = static_cast<const int8_t*>(task_.weight) + column * depth_;
    for (int64_t i = 0; i < task_.count * kInt8TileOfWeights; ++i) {
      store(sums_ + i * kLanes, broadcast_int(0));
    }
    if (tiles_ == 1 || depth_ == 0) {
      multiply_tile<Int8Weights::where_they_are, kInt8TileOfWeights>(0, 0, depth_, weights, stride,
                                                                     weights + kInt8Ahead);
    } else {
      int64_t k = 0;
      do {
        const int64_t depth = depth_ - k < kInt8Kept ? depth_ - k : kInt8Kept;
        const int8_t* const next =
            k + depth < depth_ ? weights + k + depth : weights + kInt8TileOfWeights * depth_;
        // Each tile prefetches half of the next weights.
        constexpr int kNext = kInt8TileOfWeights / 2;
        multiply_tile<Int8Weights::to_keep, kNext>(0, k, depth, weights + k, stride, next);
        multiply_tile<Int8Weights::kept, kNext>(1, k, depth, weights + k, stride,
                                                next + kNext * stride);
        for (int64_t tile = 2; tile < tiles_; ++tile) {
          multiply_tile<Int8Weights::kept, 0>(tile, k, depth, weights + k, stride, next);
        }
        k += kInt8Kept;
      } while (k < depth_);
    }
    const int32_t* from = sums_;
    for (int64_t row = 0; row < task_.count; ++row, from += kInt8TileOfWeights * kLanes) {
      int32_t sums[kInt8TileOfWeights];
      reduce_add4(load(from), load(from + kLanes), load(from + 2 * kLanes), load(from + 3 * kLanes),
                  sums);
      for (int w = 0; w < columns; ++w) {
        // Both may have wrapped; their difference is right.
        totals[row * kFinishedColumns + w] = static_cast<int32_t>(
            static_cast<uint32_t>(sums[w]) - static_cast<uint32_t>(offsets_[row]));
      }
    }
  }

  // The numbers [k, k + depth) of a tile of rows and of weights.
  template <Int8Weights kFrom, int kNext, int kRows = kInt8TileOfRows>
  void multiply_tile(int64_t tile, int64_t k, int64_t depth, const int8_t* weights, int64_t stride,
                     const int8_t* next) const {
    if constexpr (kRows > 1) {
      if (small_tile_ + (tile < large_tiles_) < kRows) {
        return multiply_tile<kFrom, kNext, kRows - 1>(tile, k, depth, weights, stride, next);
      }
    }
    const int64_t first = tile * small_tile_ + (tile < large_tiles_ ? tile : large_tiles_);
    multiply_int8_rows<kRows, kFrom, kNext>(rows_ + first * stride_ + k, stride_, weights, stride,
                                            depth, kept_, next,
                                            sums_ + first * kInt8TileOfWeights * kLanes);
  }

  const Int8LinearTask& task_;
  int64_t depth_;
  int64_t tiles_;
  int64_t small_tile_;   // rows of a tile: all have about as many
  int64_t large_tiles_;  // the first tiles, which have one row more
  int64_t stride_;
  int32_t* sums_;
  int32_t* totals_;
  int32_t* offsets_;
  Int8Stored* kept_;
  Int8Stored* rows_;
};

// Numbers of at most 2^22, rounded to even; the NaN of 0 / 0 becomes 0.
inline void store(int8_t* to, F32 x) {
#ifdef __AVX512F__
  const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x));
#else
  // 1.5 * 2^23: the lowest bits are the integer.
  const I32 bits = reinterpret_cast<I32>(add(x, broadcast(12582912.0f)));
#ifdef __AVX2__
  const auto low = reinterpret_cast<__m256i>(bits & 255);
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  const int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
#else
  typedef int8_t Bytes __attribute__((vector_size(kLanes)));
  const Bytes bytes = __builtin_convertvector(bits, Bytes);
#endif
#endif
  __builtin_memcpy(to, &bytes, sizeof bytes);
}

// Widens the numbers of kFinishedColumns columns: `absent` where there are none.
inline void widen_columns(const ColumnNumbers& numbers, int64_t column, int64_t columns,
                          float absent, float* to) {
  const auto at = [&](int64_t i) {
    const char* const from = static_cast<const char*>(numbers.data) + i * bytes_of(numbers.element);
    uint16_t half;
    __builtin_memcpy(&half, from, sizeof half);
    if (numbers.element == Element::bf16) return to_float(Bf16{half});
    if (numbers.element == Element::fp16) return to_float(Fp16{half});
    float x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  };
  for (int64_t i = 0; i < kFinishedColumns; ++i) {
    const bool is_absent = numbers.data == nullptr || i >= columns;
    to[i] = is_absent ? absent : at(numbers.is_one ? 0 : column + i);
  }
}

template <class Out>
void finish_int8(const Int8LinearTask& task, const int32_t* sums, int64_t stride, int64_t column,
                 int64_t columns) {
  int32_t integer_bias[kFinishedColumns] = {};
  float scale[kFinishedColumns], bias[kFinishedColumns], offset[kFinishedColumns];
  if (task.integer_bias != nullptr) {
    for (int64_t i = 0; i < columns; ++i) integer_bias[i] = task.integer_bias[column + i];
  }
  widen_columns(task.scale, column, columns, 1.0f, scale);
  widen_columns(task.bias, column, columns, 0.0f, bias);
  widen_columns(task.offset, column, columns, 0.0f, offset);
  for (int64_t i = 0; i < kFinishedColumns; ++i) bias[i] += offset[i];
  for (int64_t row = 0; row < task.count; ++row) {
    const float factor = task.row_scale == nullptr ? 1.0f : task.row_scale[task.row + row];
    Out finished[kFinishedColumns];
    int32_t last[kFinishedColumns] = {};
    const int32_t* from = sums + row * stride;
    if (columns < kFinishedColumns) {
      __builtin_memcpy(last, from, static_cast<size_t>(columns) * sizeof(int32_t));
      from = last;
    }
    for (int64_t i = 0; i < kFinishedColumns; i += kLanes) {
      // It wraps, as torch's sum of int32 does.
      typedef uint32_t Wrapping __attribute__((vector_size(sizeof(I32))));
      const auto sum = reinterpret_cast<I32>(reinterpret_cast<Wrapping>(load(from + i)) +
                                             reinterpret_cast<Wrapping>(load(integer_bias + i)));
      if constexpr (sizeof(Out) == sizeof(int32_t)) {
        store(finished + i, sum);
      } else {
        F32 x = multiply(multiply(to_float(sum), load(scale + i)), broadcast(factor));
        x = add(x, load(bias + i));
        if constexpr (sizeof(Out) == 1) {
          x = max(broadcast(-128.0f),
                  subtract(zero(), max(broadcast(-127.0f), subtract(zero(), x))));
        }
        store(finished + i, x);
      }
    }
    __builtin_memcpy(static_cast<Out*>(task.out) + row * task.out_stride + column, finished,
                     static_cast<size_t>(columns) * sizeof(Out));
  }
}

template <class Out>
void run_int8_linear(const Int8LinearTask& task) {
  const Int8Products products(task);
  for (int64_t column = task.first; column < task.last; column += kFinishedColumns) {
    const int64_t columns =
        task.last - column < kFinishedColumns ? task.last - column : kFinishedColumns;
    finish_int8<Out>(task, products.multiply(column, columns), kFinishedColumns, column, columns);
  }
}

template <class Out>
inline constexpr Int8LinearKernel kInt8Linear = {&run_int8_linear<Out>,
                                                 &Int8Products::scratch_bytes, &finish_int8<Out>,
                                                 sizeof(int8_t), sizeof(Out)};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

// The micro-kernel's operand for each element type, and how rows and columns become its steps.
#pragma once

#include <custom_pypto_blocks/divide.h>

#include "int8_tile.h"
#include "tile.h"
#include "widen.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

template <class Element>
struct OperandOf {
  using Type = Fp32Operand;
  using Stored = float;  // the numbers that steps are made of
  using Sum = float;
  using Sums = F32;
  using Out = Element;
};

#ifdef CUSTOM_PYPTO_CPU_BF16_DOT
template <>
struct OperandOf<Bf16> {
  using Type = Bf16PairOperand;
  using Stored = Bf16;
  using Sum = float;
  using Sums = F32;
  using Out = Bf16;
};
#endif

// int8 numbers of a weight, which are the lanes. Unlike Int8Operand's, its rows are signed and read
// in place. Where an instruction needs one side unsigned, 128 is added to the lanes, which adds 128
// times the sum of the row's numbers to the row's sum.
struct Int8WeightOperand : Int8Operand {
#ifndef CUSTOM_PYPTO_CPU_INT8_MATRIX
  static inline I32 accumulate(I32 acc, I32 a, I32 b) { return int8_dot(acc, a, b); }
#endif
};

// The offset that is added to the numbers of lanes.
template <class Element>
inline constexpr int32_t kLaneOffset = 0;
template <>
inline constexpr int32_t kLaneOffset<int8_t> = kInt8RowOffset;

template <>
struct OperandOf<int8_t> {
  using Type = Int8WeightOperand;
  using Sum = int32_t;
  using Sums = I32;
  using Out = int32_t;
};

// Rows and panel vectors of the tile: its accumulators, one step of the panel and one broadcast
// fill the registers.
inline constexpr int kRows = kLanes >= 8 || kTileVectors >= 4 ? 6 : 4;
inline constexpr int kVectors = kTileVectors;
inline constexpr int64_t kPanel = int64_t{kLanes} * kVectors;

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// Sums of a tile to and from memory, rows `stride` numbers apart. Unrolled, or compilers would keep
// the sums on the stack.
template <int kCount, int kWidth>
inline __attribute__((always_inline)) void clear_tile(F32 (&c)[kCount][kWidth]) {
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kWidth; ++v) c[r][v] = zero();
  }
}

template <int kCount, int kWidth, class Sums, class Sum>
inline __attribute__((always_inline)) void load_tile(Sums (&c)[kCount][kWidth], const Sum* from,
                                                     int64_t stride) {
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kWidth; ++v) c[r][v] = load(from + r * stride + v * kLanes);
  }
}

// Each sum times its lane's factor.
template <int kCount, int kWidth>
inline __attribute__((always_inline)) void scale_tile(F32 (&c)[kCount][kWidth],
                                                      const float* factors) {
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kWidth; ++v) c[r][v] = multiply(c[r][v], load(factors + v * kLanes));
  }
}

template <int kCount, int kWidth, class Sums, class Sum>
inline __attribute__((always_inline)) void store_tile(const Sums (&c)[kCount][kWidth], Sum* to,
                                                      int64_t stride) {
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kWidth; ++v) store(to + r * stride + v * kLanes, c[r][v]);
  }
}

// A bump allocator over a scratch buffer. Without a buffer it only counts the bytes.
class Arena {
 public:
  explicit Arena(char* begin) : begin_(begin) {}
  template <class T = char>
  T* allocate(int64_t bytes) {
    char* block = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += round_up(bytes, 64);
    return reinterpret_cast<T*>(block);
  }
  int64_t used() const { return used_; }

 private:
  char* begin_;
  int64_t used_ = 0;
};

// Conversion of rows of Element to an operand's steps.
template <class Element, class Operand>
struct Steps {
  static_assert(Operand::kDepth == 1, "one number a step");
  // Whether rows of elements can be read as steps where they are.
  static bool in_place(int64_t) { return false; }

  // count elements of a row.
  static void from_row(const Element* row, int64_t count, char* steps) {
    widen(row, 1, count, reinterpret_cast<float*>(steps));
  }
  static void zeros(int64_t count, char* steps) {
    __builtin_memset(steps, 0, static_cast<size_t>(count) * 4);
  }
  // One step for each of `count` columns; rows[d] holds element d of each, or is null for zeros.
  static void from_rows(const Element* const* rows, int64_t column_stride, int64_t count,
                        char* steps) {
    widen(rows[0], column_stride, count, reinterpret_cast<float*>(steps));
  }
  // As from_rows of 32 contiguous columns, in two halves.
  static void from_32_columns(const Element* const* rows, char* first, char* second) {
    for (int64_t i = 0; i < 16; i += kLanes)
      store(reinterpret_cast<float*>(first) + i, load(rows[0] + i));
    for (int64_t i = 0; i < 16; i += kLanes)
      store(reinterpret_cast<float*>(second) + i, load(rows[0] + 16 + i));
  }
  // One step for each lane; vectors[d] holds element d of each step.
  static void from_vectors(const F32* vectors, char* steps) {
    store(reinterpret_cast<float*>(steps), vectors[0]);
  }
  // Whether from_vectors rounds; from_residual then makes steps of the rounding errors.
  static constexpr bool kRounds = false;
  static void from_residual(const F32*, char*) {}
};

template <>
inline bool Steps<float, Fp32Operand>::in_place(int64_t) {
  return true;
}

#ifdef CUSTOM_PYPTO_CPU_BF16_DOT
template <>
struct Steps<Bf16, Bf16PairOperand> {
  static bool in_place(int64_t depth) { return depth % 2 == 0; }

  static void from_row(const Bf16* row, int64_t count, char* steps) {
    if (count != 0) __builtin_memcpy(steps, row, static_cast<size_t>(count) * 2);
    if (count % 2 != 0) __builtin_memset(steps + count * 2, 0, 2);
  }
  static void zeros(int64_t count, char* steps) {
    __builtin_memset(steps, 0, static_cast<size_t>(count) * 4);
  }
  static void from_32_columns(const Bf16* const* rows, char* first, char* second) {
    for (int64_t i = 0; i < 32; i += 2 * kLanes) {
      const int64_t next = i + kLanes;
      pair_up_twice(rows[0] + i, rows[1] + i, i < 16 ? first + i * 4 : second + (i - 16) * 4,
                    next < 16 ? first + next * 4 : second + (next - 16) * 4);
    }
  }
  static void from_rows(const Bf16* const* rows, int64_t column_stride, int64_t count,
                        char* steps) {
    uint32_t* out = reinterpret_cast<uint32_t*>(steps);
    const Bf16* even = rows[0];
    const Bf16* odd = rows[1];
    if (odd == nullptr) {
      for (int64_t i = 0; i < count; ++i) out[i] = even[i * column_stride].bits;
      return;
    }
    int64_t i = 0;
    if (column_stride == 1) {
      for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
        pair_up_twice(even + i, odd + i, steps + i * 4, steps + (i + kLanes) * 4);
      }
      for (; i + kLanes <= count; i += kLanes) {
        store_pairs(steps + i * 4, pair_up(even + i, odd + i));
      }
    }
    for (; i < count; ++i) {
      out[i] = even[i * column_stride].bits | static_cast<uint32_t>(odd[i * column_stride].bits)
                                                  << 16;
    }
  }
  static constexpr bool kRounds = true;
  static void from_residual(const F32* vectors, char* steps) {
    const Bf16Pairs rounded = round_to_pairs(vectors[0], vectors[1]);
    store_pairs(steps, round_to_pairs(subtract(vectors[0], first_of(rounded)),
                                      subtract(vectors[1], second_of(rounded))));
  }
  static void from_vectors(const F32* vectors, char* steps) {
    store_pairs(steps, round_to_pairs(vectors[0], vectors[1]));
  }
};
#endif

template <>
struct Steps<int8_t, Int8WeightOperand> {
  static constexpr int64_t kDepth = Int8WeightOperand::kDepth;
  static constexpr int64_t kStepBytes = Int8WeightOperand::kStepBytes;

  static bool in_place(int64_t depth) { return kHasInt8Dot && depth % kDepth == 0; }
  static void from_row(const int8_t* row, int64_t count, char* steps) {
    Int8Stored* out = reinterpret_cast<Int8Stored*>(steps);
    for (int64_t i = 0; i < count; ++i) out[i] = row[i];
    for (int64_t i = count; i % kDepth != 0; ++i) out[i] = 0;
  }
  static void zeros(int64_t count, char* steps) {
    __builtin_memset(steps, 0, static_cast<size_t>(count * kStepBytes));
  }
  static void from_rows(const int8_t* const* rows, int64_t column_stride, int64_t count,
                        char* steps) {
    Int8Stored* out = reinterpret_cast<Int8Stored*>(steps);
    int64_t i = 0;
#ifdef CUSTOM_PYPTO_CPU_INT8_DOT
    if (column_stride == 1 && rows[kDepth - 1] != nullptr) {
      for (; i + kInterleaved <= count; i += kInterleaved) {
        interleave(rows, i, steps + i * kStepBytes);
      }
    }
#endif
    for (; i < count; ++i) {
      for (int64_t d = 0; d < kDepth; ++d) {
        const int32_t x = rows[d] == nullptr ? 0 : rows[d][i * column_stride];
        out[i * kDepth + d] = static_cast<Int8Stored>(x + kLaneOffset<int8_t>);
      }
    }
  }
};

// How many steps `count` elements take.
template <class Operand>
inline int64_t steps_of(int64_t count) {
  return divide_up(count, Operand::kDepth);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

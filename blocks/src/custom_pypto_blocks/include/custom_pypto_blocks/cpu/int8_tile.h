// The tile's operand of int8 numbers, and how its rows and panels are stored. Sums are int32 and
// exact while they fit: for fewer than 2^17 numbers along k.
//
// Instructions differ in what they multiply: where kHasInt8Dot, four adjacent numbers of a row and
// of a lane in one step, else two, as int16; where CUSTOM_PYPTO_CPU_INT8_MATRIX, eight of two rows
// and of two lanes. On x86 the row's numbers are unsigned, so rows are stored with 128 added, and
// sums start at -128 times the sum of the lane's numbers.
#pragma once

#include "tile.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

#ifdef CUSTOM_PYPTO_CPU_INT8_DOT
// How a number of a lane is stored, and what is added to one of a row.
using Int8Stored = int8_t;
inline constexpr int32_t kInt8RowOffset = kInt8DotIsUnsigned ? 128 : 0;
#else
using Int8Stored = int16_t;
inline constexpr int32_t kInt8RowOffset = 0;
#endif

// The bytes of a step as one number.
#ifdef CUSTOM_PYPTO_CPU_INT8_MATRIX
using Int8Step = int64_t;
#else
using Int8Step = int32_t;
#endif

struct Int8Operand {
  static constexpr int64_t kStepBytes = sizeof(Int8Step);
  static constexpr int64_t kDepth = kStepBytes / sizeof(Int8Stored);  // numbers along k in a step
  static inline I32 load_lanes(const char* p) { return load(reinterpret_cast<const int32_t*>(p)); }
#ifdef CUSTOM_PYPTO_CPU_INT8_MATRIX
  static constexpr int kRowsTogether = 2;
  static inline I32 load_step(const char* p, const char* next_row) {
    return load_halves(p, next_row);
  }
  static inline I32 accumulate(I32 acc, I32 a, I32 b) { return multiply_halves(acc, a, b); }
#else
  static constexpr int kRowsTogether = 1;
  static inline I32 load_step(const char* p) {
    Int8Step x;
    __builtin_memcpy(&x, p, sizeof x);
    return broadcast_int(x);
  }
  static inline I32 accumulate(I32 acc, I32 a, I32 b) { return int8_dot(acc, b, a); }
#endif
};

// Steps of `depth` numbers along k; the last one may be padded with zeros.
constexpr int64_t int8_steps(int64_t depth) {
  return (depth + Int8Operand::kDepth - 1) / Int8Operand::kDepth;
}

// Whether rows whose numbers are adjacent, a multiple of kDepth of them, are multiplied in place.
inline constexpr bool kInt8RowsInPlace = kHasInt8Dot && kInt8RowOffset == 0;

// Writes a row, whose numbers are `stride` numbers apart, as it is multiplied:
// int8_steps(depth) * kStepBytes bytes.
inline void store_int8_row(const int8_t* row, int64_t stride, int64_t depth, char* out) {
  Int8Stored* to = reinterpret_cast<Int8Stored*>(out);
  if (stride == 1) {
    for (int64_t k = 0; k < depth; ++k) to[k] = static_cast<Int8Stored>(row[k] + kInt8RowOffset);
  } else {
    for (int64_t k = 0; k < depth; ++k) {
      to[k] = static_cast<Int8Stored>(row[k * stride] + kInt8RowOffset);
    }
  }
  for (int64_t k = depth; k < int8_steps(depth) * Int8Operand::kDepth; ++k) to[k] = 0;
}

// Whether StoreInt8Rows may be used: rows are not multiplied in place, and are stored by adding
// 128.
inline constexpr bool kInt8RowsStoredAhead = kHasInt8Dot && kInt8RowOffset != 0;

// Bytes that StoreInt8Rows copies at a time: rows are a multiple of it.
inline constexpr int64_t kStoredAheadLine = 128;

// Takes the place of a prefetch, and stores rows of a later tile as store_int8_row does: beside the
// dot products of a tile the copy costs no extra time. For a tile whose rows are `row_bytes` long
// it reads and writes kPrefetchedRows / 2 rows, and prefetches as many, kAhead rows later. Numbers
// of a row are adjacent.
template <int64_t kAhead>
class StoreInt8Rows {
 public:
  StoreInt8Rows(const char* const* rows, int64_t row_bytes, char* out)
      : next_(rows), row_bytes_(row_bytes), out_(out) {}

  inline void advance() {
    const char* const at = *next_ + offset_;
    const char* const later = next_[kAhead] + offset_;
    __builtin_prefetch(later);
    __builtin_prefetch(later + 64);
    unroll<kStoredAheadLine / kBytes>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      const I32 numbers = load(reinterpret_cast<const int32_t*>(at + i * kBytes));
      store(reinterpret_cast<int32_t*>(out_ + i * kBytes),
            numbers ^ broadcast_int(static_cast<int32_t>(0x80808080u)));  // adds 128
    });
    out_ += kStoredAheadLine;
    offset_ += kStoredAheadLine;
    const int64_t done = offset_ >= row_bytes_;
    next_ += done;
    offset_ &= done - 1;
  }

 private:
  static constexpr int64_t kBytes = sizeof(I32);

  const char* const* next_;
  int64_t row_bytes_;
  char* out_;
  int64_t offset_ = 0;
};

// Writes what the sums of packed lanes start from; `lanes` is a multiple of kLanes.
inline void start_int8_sums(const char* packed, int64_t lanes, int64_t steps, int32_t* start) {
  for (int64_t lane = 0; lane < lanes; lane += kLanes) {
    I32 sums = broadcast_int(0);
    if (kInt8RowOffset != 0) {
      const I32 offsets = broadcast_int(static_cast<int32_t>(0x80808080u));
      for (int64_t step = 0; step < steps; ++step) {
        sums = int8_dot(
            sums, Int8Operand::load_lanes(packed + (step * lanes + lane) * Int8Operand::kStepBytes),
            offsets);
      }
    }
    store(start + lane, sums);
    for (int64_t i = lane; i < lane + kLanes; ++i) start[i] = -start[i];
  }
}

// Packs int8 lanes, int8_steps(depth) steps of `lanes` Int8Steps: step s of a lane is its kDepth
// numbers from s * kDepth on; zero for lane >= count and k >= depth. `start` gets what the sums of
// each lane start from. source(lane, k) returns an int8_t.
template <class Source>
inline void pack_int8(const Source& source, int64_t count, int64_t lanes, int64_t depth,
                      char* packed, int32_t* start) {
  constexpr int64_t kDepth = Int8Operand::kDepth;
  for (int64_t lane = 0; lane < lanes; ++lane) start[lane] = 0;
  Int8Stored* out = reinterpret_cast<Int8Stored*>(packed);
  for (int64_t step = 0; step < int8_steps(depth); ++step) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (int64_t k = step * kDepth; k < (step + 1) * kDepth; ++k) {
        const int8_t x = lane < count && k < depth ? source(lane, k) : int8_t{0};
        start[lane] -= kInt8RowOffset * x;
        *out++ = x;
      }
    }
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

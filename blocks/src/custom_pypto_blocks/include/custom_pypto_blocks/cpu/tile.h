// The one micro-kernel, c[r][lane] += a[r][k] * b[k][lane], and the packing of b.
//
// The rows of a are read in place, one pointer each, and broadcast; b is packed once into
// panels, lanes contiguous. An operand defines one step of the k loop:
//   Fp32Operand      one fp32 number of a row, one fp32 number in each lane
//   Bf16PairOperand  two bf16 numbers, adjacent along k, of a row and in each lane
//                    (where kHasBf16Dot)
//   Int8Operand      int8 numbers, summed as int32: in int8_tile.h
// An operand whose kRowsTogether is 2 multiplies two rows by half a vector of lanes at a time.
// A row's result depends on that row and the panel alone, bit for bit, whatever shares its tile.
#pragma once

#include "unroll.h"
#include "vectors.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

struct Fp32Operand {
  static constexpr int64_t kDepth = 1;  // numbers along k in a step
  static constexpr int64_t kStepBytes = 4;
  static constexpr int kRowsTogether = 1;
  static inline F32 load_lanes(const char* p) { return load(reinterpret_cast<const float*>(p)); }
  static inline F32 load_step(const char* p) {
    float x;
    __builtin_memcpy(&x, p, sizeof x);
    return broadcast(x);
  }
  static inline F32 accumulate(F32 acc, F32 a, F32 b) { return multiply_add(a, b, acc); }
};

#ifdef CUSTOM_PYPTO_CPU_BF16_DOT
struct Bf16PairOperand {
  static constexpr int64_t kDepth = 2;
  static constexpr int64_t kStepBytes = 4;
  static constexpr int kRowsTogether = 1;
  static inline Bf16Pairs load_lanes(const char* p) { return load_pairs(p); }
  static inline Bf16Pair load_step(const char* p) { return load_pair(p); }
  static inline F32 accumulate(F32 acc, Bf16Pair a, Bf16Pairs b) {
    return dot_accumulate(acc, b, a);
  }
};
#endif

// No prefetch while a tile is computed.
struct NoPrefetch {
  inline void advance() {}
};

// Calls a prefetcher that outlives the tile.
template <class Prefetcher>
struct PrefetchBy {
  Prefetcher* prefetcher;
  inline void advance() { prefetcher->advance(); }
};

// Prefetches the rows of a later tile: two cache lines every kPrefetchSteps steps, row by row. All
// at once would delay the loads of this tile; line by line across the rows would hide from the
// hardware prefetcher that they are contiguous. It never stops, since a branch within the tile's
// loop makes compilers spill the sums: for a tile whose steps take n bytes of a row it needs
// pointers to kPrefetchedRows rows of at least n / 2 bytes.
template <class Operand>
inline constexpr int kPrefetchSteps = 16 / Operand::kStepBytes;
inline constexpr int64_t kPrefetchedRows = 16;
class PrefetchRows {
 public:
  PrefetchRows(const char* const* rows, int64_t row_bytes) : next_(rows), row_bytes_(row_bytes) {}

  inline void advance() {
    const char* const at = *next_ + offset_;
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
    offset_ += 128;
    const int64_t done = offset_ >= row_bytes_;
    next_ += done;
    offset_ &= done - 1;
  }

 private:
  const char* const* next_;
  int64_t row_bytes_;
  int64_t offset_ = 0;
};

// Steps without a branch between them. Where a tile fills 16 registers, more would make compilers
// spill sums.
template <class Operand>
inline constexpr int kStepsTogether = kTileVectors > 2 ? kPrefetchSteps<Operand> : 2;

// If rows are multiplied in pairs, c[2 i][v] holds the sums of rows 2 i and 2 i + 1, one after the
// other, in the first half of the lanes, c[2 i + 1][v] those in the second half.
template <class Operand, int kRows, int kVectors, class Sum>
inline __attribute__((always_inline)) void multiply_step(Sum (&c)[kRows][kVectors],
                                                         const char* const (&row)[kRows],
                                                         int64_t row_offset, const char* panel) {
  constexpr int64_t kVectorBytes = kLanes * Operand::kStepBytes;
  if constexpr (Operand::kRowsTogether == 1) {
    decltype(Operand::load_lanes(panel)) b[kVectors];
    unroll<kVectors>([&](int v) CUSTOM_PYPTO_INLINE_LAMBDA {
      b[v] = Operand::load_lanes(panel + v * kVectorBytes);
    });
    unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
      const auto a = Operand::load_step(row[r] + row_offset);
      unroll<kVectors>([&](int v) CUSTOM_PYPTO_INLINE_LAMBDA {
        c[r][v] = Operand::accumulate(c[r][v], a, b[v]);
      });
    });
  } else {  // the rows stay in registers, not the lanes: they are fewer
    decltype(Operand::load_step(panel, panel)) a[kRows / 2];
    unroll<kRows / 2>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      a[i] = Operand::load_step(row[2 * i] + row_offset, row[2 * i + 1] + row_offset);
    });
    unroll<2 * kVectors>([&](int half) CUSTOM_PYPTO_INLINE_LAMBDA {
      const auto b = Operand::load_lanes(panel + half * kVectorBytes / 2);
      unroll<kRows / 2>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
        Sum& sums = c[2 * i + half % 2][half / 2];
        sums = Operand::accumulate(sums, a[i], b);
      });
    });
  }
}

// Sums from a row in each c[r] to what multiply_step takes, and back.
template <class Operand, int kRows, int kVectors, class Sum>
inline __attribute__((always_inline)) void transpose_pairs(Sum (&c)[kRows][kVectors]) {
  if constexpr (Operand::kRowsTogether == 2) {
    unroll<kRows / 2 * kVectors>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int r = i / kVectors * 2;
      const int v = i % kVectors;
      transpose_halves(c[r][v], c[r + 1][v]);
    });
  }
}

// c[r][v] += sum over s < steps of rows[r][s] * panel[s][v].
// rows: kRows pointers to `steps` steps each, kRowStep bytes apart, any alignment. panel: step s
// begins s * panel_stride bytes after `panel`, and holds kVectors vectors of lanes.
template <class Operand, int kRows, int kVectors, int64_t kRowStep = Operand::kStepBytes,
          class Prefetch = NoPrefetch, class Sum>
inline __attribute__((always_inline)) void multiply_tile(Sum (&c)[kRows][kVectors],
                                                         const char* const* rows, const char* panel,
                                                         int64_t panel_stride, int64_t steps,
                                                         Prefetch prefetch = Prefetch()) {
  if constexpr (kRows % Operand::kRowsTogether == 0) {
    const char* row[kRows];
    unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA { row[r] = rows[r]; });
    transpose_pairs<Operand>(c);
    constexpr int kTogether = kStepsTogether<Operand>;
    int64_t s = 0;
    for (; s + kPrefetchSteps<Operand> <= steps; s += kPrefetchSteps<Operand>) {
      prefetch.advance();
#pragma GCC unroll 1
      for (int64_t i = s; i < s + kPrefetchSteps<Operand>; i += kTogether) {
        unroll<kTogether>([&](int step) CUSTOM_PYPTO_INLINE_LAMBDA {
          multiply_step<Operand>(c, row, (i + step) * kRowStep, panel + step * panel_stride);
        });
        panel += kTogether * panel_stride;
      }
    }
    for (; s < steps; ++s, panel += panel_stride) {
      multiply_step<Operand>(c, row, s * kRowStep, panel);
    }
    transpose_pairs<Operand>(c);
  } else {  // the last row is multiplied twice
    const char* even_rows[kRows + 1];
    Sum sums[kRows + 1][kVectors];
    unroll<kRows + 1>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int from = r < kRows ? r : kRows - 1;
      even_rows[r] = rows[from];
      unroll<kVectors>([&](int v) CUSTOM_PYPTO_INLINE_LAMBDA { sums[r][v] = c[from][v]; });
    });
    multiply_tile<Operand, kRows + 1, kVectors, kRowStep>(sums, even_rows, panel, panel_stride,
                                                          steps, prefetch);
    unroll<kRows * kVectors>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      c[i / kVectors][i % kVectors] = sums[i / kVectors][i % kVectors];
    });
  }
}

// Packs fp32 lanes: out[k * lanes + lane] = source(lane, k), zero for lane >= count.
// source(lane, k) returns a float.
template <class Source>
inline void pack_fp32(const Source& source, int64_t count, int64_t lanes, int64_t depth,
                      char* packed) {
  float* out = reinterpret_cast<float*>(packed);
  for (int64_t k = 0; k < depth; ++k, out += lanes) {
    for (int64_t lane = 0; lane < count; ++lane) out[lane] = source(lane, k);
    for (int64_t lane = count; lane < lanes; ++lane) out[lane] = 0.0f;
  }
}

// Packs bf16 pairs along k: step s of a lane is source(lane, 2 s) and source(lane, 2 s + 1).
// source(lane, k) returns the Bf16; depth must be even; zero for lane >= count.
template <class Source>
inline void pack_bf16_pairs(const Source& source, int64_t count, int64_t lanes, int64_t depth,
                            char* packed) {
  uint32_t* out = reinterpret_cast<uint32_t*>(packed);
  for (int64_t k = 0; k < depth; k += 2, out += lanes) {
    for (int64_t lane = 0; lane < count; ++lane) {
      out[lane] = source(lane, k).bits | static_cast<uint32_t>(source(lane, k + 1).bits) << 16;
    }
    for (int64_t lane = count; lane < lanes; ++lane) out[lane] = 0;
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

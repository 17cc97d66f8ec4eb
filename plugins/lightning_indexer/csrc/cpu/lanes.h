// Vectors of 32-bit integers as wide as the level's vectors of floats, and moves between lanes.
#pragma once

#ifndef CUSTOM_PYPTO_CPU_LEVEL
#error "include custom_pypto/cpu/<level>.h first"
#endif

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

typedef int32_t Integers __attribute__((vector_size(kLanes * 4)));

inline Integers load_integers(const void* p) {
  Integers x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline void store_integers(void* p, Integers x) { __builtin_memcpy(p, &x, sizeof x); }

inline Integers lower(Integers a, Integers b) { return a < b ? a : b; }
inline Integers higher(Integers a, Integers b) { return a > b ? a : b; }

template <int... kLane>
struct LaneList {};

template <int kCount, int... kLane>
struct CountLanes : CountLanes<kCount - 1, kCount - 1, kLane...> {};

template <int... kLane>
struct CountLanes<0, kLane...> {
  using List = LaneList<kLane...>;
};

using AllLanes = CountLanes<kLanes>::List;

// Lane l of the result is lane kLane[l] of a, or of b from kLanes on.
template <int... kLane>
inline Integers choose_lanes(Integers a, Integers b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, kLane...);
#else
  return __builtin_shuffle(a, b, Integers{kLane...});
#endif
}

// In lane l, lane l ^ kFlip of x.
template <int kFlip, int... kLane>
inline Integers flip_lanes(Integers x, LaneList<kLane...>) {
  return choose_lanes<(kLane ^ kFlip)...>(x, x);
}

// In lane l, that lane of a if l & kBit is 0, else of b.
template <int kBit, int... kLane>
inline Integers pick_lanes(Integers a, Integers b, LaneList<kLane...>) {
  return choose_lanes<((kLane & kBit) == 0 ? kLane : kLane + kLanes)...>(a, b);
}

// Lanes of a and b in turn, from lane kFirst of each.
template <int kFirst, int... kLane>
inline Integers interleave_lanes(Integers a, Integers b, LaneList<kLane...>) {
  return choose_lanes<(kFirst + kLane / 2 + kLane % 2 * kLanes)...>(a, b);
}

// x[i][j] becomes x[j][i].
inline void transpose(Integers (&x)[kLanes]) {
  constexpr int kHalf = kLanes / 2;
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    Integers next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      next[2 * i] = interleave_lanes<0>(x[i], x[i + kHalf], AllLanes());
      next[2 * i + 1] = interleave_lanes<kHalf>(x[i], x[i + kHalf], AllLanes());
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) x[i] = next[i];
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL

// Vectors of 32-bit integers as wide as the vectors of floats, and shuffles of their lanes.
#pragma once

#include <custom_pypto_blocks/cpu/unroll.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

typedef int32_t Integers __attribute__((vector_size(kLanes * 4)));

inline Integers lower(Integers a, Integers b) { return a < b ? a : b; }
inline Integers higher(Integers a, Integers b) { return a > b ? a : b; }

// Whether any bit is set.
inline bool is_any_set(Integers x) {
  uint64_t parts[sizeof x / sizeof(uint64_t)];
  __builtin_memcpy(parts, &x, sizeof x);
  uint64_t any = 0;
  for (uint64_t part : parts) any |= part;
  return any != 0;
}

using AllLanes = IndicesTo<kLanes>::List;

// Lane l of the result is lane kLane[l] of a, or of b from kLanes on.
template <int... kLane>
inline Integers choose_lanes(Integers a, Integers b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, kLane...);
#else
  return __builtin_shuffle(a, b, Integers{kLane...});
#endif
}

// Lane l of the result is lane l ^ kFlip of x.
template <int kFlip, int... kLane>
inline Integers flip_lanes(Integers x, Indices<kLane...>) {
  return choose_lanes<(kLane ^ kFlip)...>(x, x);
}

// Lane l of the result is lane l of a if l & kBit is 0, else of b.
template <int kBit, int... kLane>
inline Integers pick_lanes(Integers a, Integers b, Indices<kLane...>) {
  return choose_lanes<((kLane & kBit) == 0 ? kLane : kLane + kLanes)...>(a, b);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

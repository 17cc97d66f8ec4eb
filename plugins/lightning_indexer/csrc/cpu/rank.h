// Scores as ranks: integers in their order.
#pragma once

#include <custom_pypto_blocks/cpu/vectors.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline int32_t rank_of(float score) {
  if (score != score) return INT32_MIN;
  const int32_t bits = static_cast<int32_t>(float_bits(score + 0.0f));  // -0 becomes 0
  return bits ^ ((bits >> 31) & INT32_MAX);
}

// Turns scores, given as their bits, into ranks.
inline void rank_scores(int32_t* scores, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = rank_of(float_from_bits(static_cast<uint32_t>(scores[i])));
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

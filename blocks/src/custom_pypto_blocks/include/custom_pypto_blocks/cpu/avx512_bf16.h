// The instruction set avx512_bf16: avx512_vnni and the dot product of bf16 pairs.
#pragma once

#define CUSTOM_PYPTO_CPU_BF16_DOT

#include "avx512_vnni.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using Bf16Pairs = __m512i;
using Bf16Pair = __m512i;

inline Bf16Pairs load_pairs(const char* p) { return _mm512_loadu_si512(p); }
inline void store_pairs(char* p, Bf16Pairs x) { _mm512_storeu_si512(p, x); }
inline Bf16Pair load_pair(const char* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return _mm512_set1_epi32(pair);
}

inline F32 dot_accumulate(F32 acc, Bf16Pairs a, Bf16Pair b) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

inline F32 first_of(Bf16Pairs x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
inline F32 second_of(Bf16Pairs x) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return _mm512_castsi512_ps(_mm512_and_si512(x, high));
}

inline Bf16Pairs widen_and_pair(__m256i first, __m256i second) {
  const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16);
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first), high);
}
inline Bf16Pairs pair_up(const Bf16* first, const Bf16* second) {
  return widen_and_pair(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)));
}
// Which of 64 numbers each of 16 pairs is made of: (0, 32), (1, 33), ...
alignas(64) inline constexpr uint16_t kPairOrder[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                        37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                        11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
inline Bf16Pairs round_to_pairs(F32 first, F32 second) {
  const __m512i low = _mm512_castsi256_si512(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(first)));
  const __m512i high =
      _mm512_castsi256_si512(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(second)));
  return _mm512_permutex2var_epi16(low, _mm512_load_si512(kPairOrder), high);
}
inline void pair_up_twice(const Bf16* first, const Bf16* second, char* low, char* high) {
  const __m512i order = _mm512_load_si512(kPairOrder);
  const __m512i x = _mm512_loadu_si512(first);
  const __m512i y = _mm512_loadu_si512(second);
  store_pairs(low, _mm512_permutex2var_epi16(x, order, y));
  const __m512i next = _mm512_add_epi16(order, _mm512_set1_epi16(16));
  store_pairs(high, _mm512_permutex2var_epi16(x, next, y));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

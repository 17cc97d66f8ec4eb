// The instruction set avx2_vnni: avx2 and AVX-VNNI, the dot product of int8 numbers. For int8
// kernels.
#pragma once

#define CUSTOM_PYPTO_CPU_INT8_DOT

#include "avx2.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline constexpr bool kInt8DotIsUnsigned = true;

inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  return reinterpret_cast<I32>(_mm256_dpbusd_avx_epi32(
      reinterpret_cast<__m256i>(acc), reinterpret_cast<__m256i>(b), reinterpret_cast<__m256i>(a)));
}

inline constexpr int64_t kInterleaved = 32;
inline void interleave(const int8_t* const* rows, int64_t at, char* out) {
  // Unpacking works within 128 bits: their columns are brought there first.
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  const __m256i offset = _mm256_set1_epi8(-128);
  const auto row = [&](int r) __attribute__((always_inline)) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + at));
    return _mm256_permutevar8x32_epi32(_mm256_xor_si256(x, offset), order);
  };
  const __m256i a = row(0), b = row(1), c = row(2), d = row(3);
  const __m256i low_ab = _mm256_unpacklo_epi8(a, b), high_ab = _mm256_unpackhi_epi8(a, b);
  const __m256i low_cd = _mm256_unpacklo_epi8(c, d), high_cd = _mm256_unpackhi_epi8(c, d);
  int32_t* to = reinterpret_cast<int32_t*>(out);
  store(to, reinterpret_cast<I32>(_mm256_unpacklo_epi16(low_ab, low_cd)));
  store(to + 8, reinterpret_cast<I32>(_mm256_unpackhi_epi16(low_ab, low_cd)));
  store(to + 16, reinterpret_cast<I32>(_mm256_unpacklo_epi16(high_ab, high_cd)));
  store(to + 24, reinterpret_cast<I32>(_mm256_unpackhi_epi16(high_ab, high_cd)));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

// The instruction set avx512_vnni: avx512 and the dot product of int8 numbers. For int8 kernels.
#pragma once

#define CUSTOM_PYPTO_CPU_INT8_DOT

#include "avx512.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline constexpr bool kInt8DotIsUnsigned = true;

inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  return reinterpret_cast<I32>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(acc), reinterpret_cast<__m512i>(b), reinterpret_cast<__m512i>(a)));
}

inline constexpr int64_t kInterleaved = 64;
inline void interleave(const int8_t* const* rows, int64_t at, char* out) {
  // Unpacking works within 128 bits: their columns are brought there first.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i offset = _mm512_set1_epi8(-128);
  const auto row = [&](int r) __attribute__((always_inline)) {
    const __m512i x = _mm512_xor_si512(_mm512_loadu_si512(rows[r] + at), offset);
    return _mm512_permutexvar_epi32(order, x);
  };
  const __m512i a = row(0), b = row(1), c = row(2), d = row(3);
  const __m512i low_ab = _mm512_unpacklo_epi8(a, b), high_ab = _mm512_unpackhi_epi8(a, b);
  const __m512i low_cd = _mm512_unpacklo_epi8(c, d), high_cd = _mm512_unpackhi_epi8(c, d);
  _mm512_storeu_si512(out, _mm512_unpacklo_epi16(low_ab, low_cd));
  _mm512_storeu_si512(out + 64, _mm512_unpackhi_epi16(low_ab, low_cd));
  _mm512_storeu_si512(out + 128, _mm512_unpacklo_epi16(high_ab, high_cd));
  _mm512_storeu_si512(out + 192, _mm512_unpackhi_epi16(high_ab, high_cd));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

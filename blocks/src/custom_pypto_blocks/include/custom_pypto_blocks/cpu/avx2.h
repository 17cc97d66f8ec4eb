// The instruction set avx2: AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include "scalar.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using F32 = __m256;
// Not __m256i, whose elements are of 64 bits: GCC would copy every sum that a loop keeps.
typedef int32_t I32 __attribute__((vector_size(32)));

inline constexpr int kLanes = 8;
inline constexpr int kTileVectors = 2;

inline F32 load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, F32 x) { _mm256_storeu_ps(p, x); }
inline F32 broadcast(float x) { return _mm256_set1_ps(x); }

inline constexpr bool kMultiplyAddIsFused = true;
inline F32 multiply_add(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
inline F32 max(F32 a, F32 b) { return _mm256_max_ps(a, b); }
inline F32 bitwise_and(F32 a, F32 b) { return _mm256_and_ps(a, b); }

inline I32 load(const int32_t* p) {
  return reinterpret_cast<I32>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void store(int32_t* p, I32 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(x));
}
inline I32 broadcast_int(int32_t x) { return reinterpret_cast<I32>(_mm256_set1_epi32(x)); }
inline I32 max(I32 a, I32 b) {
  return reinterpret_cast<I32>(
      _mm256_max_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
inline F32 to_float(I32 x) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(x)); }
#ifndef CUSTOM_PYPTO_CPU_INT8_DOT
inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  acc += reinterpret_cast<I32>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
  asm("" : "+x"(acc));  // else GCC adds the products of many steps later, and spills them
  return acc;
}
#endif

inline F32 round(F32 x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline F32 scale_by_power(F32 x, F32 n) {
  const __m256i exponent = _mm256_max_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(-127));
  const __m256i biased = _mm256_add_epi32(exponent, _mm256_set1_epi32(127));
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23)));
}

inline F32 load(const Bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline F32 load(const Fp16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline F32 load(const int8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
struct Int4Numbers {
  F32 scales, shifts;
  Int4Numbers() = default;
  // The numbers plus 8, which are not negative, are those of the bytes with 0x88 flipped.
  Int4Numbers(float scale, float shift)
      : scales(broadcast(scale)), shifts(broadcast(shift - 8 * scale)) {}
  inline void load(const Int4* p, F32 (&x)[2]) const {
    // One instruction loads and widens the bytes. Then they are flipped.
    const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m256i bytes = _mm256_xor_si256(_mm256_cvtepu8_epi32(packed), _mm256_set1_epi32(0x88));
    const __m256i first = _mm256_and_si256(bytes, _mm256_set1_epi32(15));
    x[0] = multiply_add(_mm256_cvtepi32_ps(first), scales, shifts);
    x[1] = multiply_add(_mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4)), scales, shifts);
  }
};
inline void store(Bf16* p, F32 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}
inline void store(Fp16* p, F32 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

inline void reduce_add4(F32 a, F32 b, F32 c, F32 d, float* out) {
  const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  const __m256d ab_pairs = _mm256_castps_pd(ab);
  const __m256d cd_pairs = _mm256_castps_pd(cd);
  const __m256 sums = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(ab_pairs, cd_pairs)),
                                    _mm256_castpd_ps(_mm256_unpackhi_pd(ab_pairs, cd_pairs)));
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
}
inline void reduce_add4(I32 a, I32 b, I32 c, I32 d, int32_t* out) {
  const auto add_pairs = [](I32 x, I32 y) __attribute__((always_inline)) {
    return reinterpret_cast<I32>(
        _mm256_hadd_epi32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
  };
  const auto sums = reinterpret_cast<__m256i>(add_pairs(add_pairs(a, b), add_pairs(c, d)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1)));
}
inline float reduce_add(F32 x) {
  float sums[4];
  reduce_add4(x, x, x, x, sums);
  return sums[0];
}
inline float reduce_max(F32 x) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

inline void transpose(F32 (&rows)[kLanes]) {
  __m256 fours[8];  // of rows
  for (int i = 0; i < 8; i += 4) {
    const __m256d low_a = _mm256_castps_pd(_mm256_unpacklo_ps(rows[i], rows[i + 1]));
    const __m256d high_a = _mm256_castps_pd(_mm256_unpackhi_ps(rows[i], rows[i + 1]));
    const __m256d low_b = _mm256_castps_pd(_mm256_unpacklo_ps(rows[i + 2], rows[i + 3]));
    const __m256d high_b = _mm256_castps_pd(_mm256_unpackhi_ps(rows[i + 2], rows[i + 3]));
    fours[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(low_a, low_b));
    fours[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low_a, low_b));
    fours[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high_a, high_b));
    fours[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high_a, high_b));
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

inline int keep_at_least(const int32_t* values, int32_t threshold, int32_t position, int32_t* kept,
                         int32_t* positions) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(threshold), x);
  unsigned mask = ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(below))) & 0xffu;
  int count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    kept[count] = values[lane];
    positions[count++] = position + lane;
  }
  return count;
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

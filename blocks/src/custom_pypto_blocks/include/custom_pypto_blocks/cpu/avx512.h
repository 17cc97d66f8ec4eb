// The instruction set avx512: AVX-512 F, BW, DQ and VL.
#pragma once

// GCC 12's intrinsics pass an "undefined" vector on purpose and warn about it (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "scalar.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using F32 = __m512;
// Not __m512i, whose elements are of 64 bits: GCC would copy every sum that a loop keeps.
typedef int32_t I32 __attribute__((vector_size(64)));

inline constexpr int kLanes = 16;
inline constexpr int kTileVectors = 4;

inline F32 load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F32 x) { _mm512_storeu_ps(p, x); }
inline F32 broadcast(float x) { return _mm512_set1_ps(x); }

inline constexpr bool kMultiplyAddIsFused = true;
inline F32 multiply_add(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
inline F32 max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
inline F32 bitwise_and(F32 a, F32 b) { return _mm512_and_ps(a, b); }

inline I32 load(const int32_t* p) { return reinterpret_cast<I32>(_mm512_loadu_si512(p)); }
inline void store(int32_t* p, I32 x) { _mm512_storeu_si512(p, reinterpret_cast<__m512i>(x)); }
inline I32 broadcast_int(int32_t x) { return reinterpret_cast<I32>(_mm512_set1_epi32(x)); }
inline I32 max(I32 a, I32 b) {
  return reinterpret_cast<I32>(
      _mm512_max_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
inline F32 to_float(I32 x) { return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(x)); }
#ifndef CUSTOM_PYPTO_CPU_INT8_DOT
inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  acc += reinterpret_cast<I32>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
  asm("" : "+v"(acc));  // else GCC adds the products of many steps later, and spills them
  return acc;
}
#endif

inline F32 round(F32 x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT); }
inline F32 scale_by_power(F32 x, F32 n) { return _mm512_scalef_ps(x, n); }

inline F32 load(const Bf16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline F32 load(const Fp16* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F32 load(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
// Numbers of 4 bits look up what they stand for.
struct Int4Numbers {
  F32 table;
  Int4Numbers() = default;
  Int4Numbers(float scale, float shift)
      : table(multiply_add(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1),
                           broadcast(scale), broadcast(shift))) {}
  inline void load(const Int4* p, F32 (&x)[2]) const {
    const __m512i bytes =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    // Only the lowest 4 bits of an index count.
    x[0] = _mm512_permutexvar_ps(bytes, table);
    x[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), table);
  }
};
inline void store(Bf16* p, F32 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i rounded = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
inline void store(Fp16* p, F32 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

inline void reduce_add4(F32 a, F32 b, F32 c, F32 d, float* out) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512d ab_pairs = _mm512_castps_pd(ab);
  const __m512d cd_pairs = _mm512_castps_pd(cd);
  const __m512 sums = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab_pairs, cd_pairs)),
                                    _mm512_castpd_ps(_mm512_unpackhi_pd(ab_pairs, cd_pairs)));
  const __m256 halves =
      _mm256_add_ps(_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps(sums, 1));
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}
inline void reduce_add4(I32 a, I32 b, I32 c, I32 d, int32_t* out) {
  const auto add_halves = [](I32 x) __attribute__((always_inline)) {
    const auto both = reinterpret_cast<__m512i>(x);
    return _mm256_add_epi32(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1));
  };
  const __m256i sums = _mm256_hadd_epi32(_mm256_hadd_epi32(add_halves(a), add_halves(b)),
                                         _mm256_hadd_epi32(add_halves(c), add_halves(d)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1)));
}
inline float reduce_add(F32 x) {
  float sums[4];
  reduce_add4(x, x, x, x, sums);
  return sums[0];
}
inline float reduce_max(F32 x) { return _mm512_reduce_max_ps(x); }

inline void transpose(F32 (&rows)[kLanes]) {
  __m512d pairs[16];  // of adjacent rows, then of pairs of rows
  for (int i = 0; i < 16; i += 4) {
    const __m512d low_a = _mm512_castps_pd(_mm512_unpacklo_ps(rows[i], rows[i + 1]));
    const __m512d high_a = _mm512_castps_pd(_mm512_unpackhi_ps(rows[i], rows[i + 1]));
    const __m512d low_b = _mm512_castps_pd(_mm512_unpacklo_ps(rows[i + 2], rows[i + 3]));
    const __m512d high_b = _mm512_castps_pd(_mm512_unpackhi_ps(rows[i + 2], rows[i + 3]));
    pairs[i] = _mm512_unpacklo_pd(low_a, low_b);
    pairs[i + 1] = _mm512_unpackhi_pd(low_a, low_b);
    pairs[i + 2] = _mm512_unpacklo_pd(high_a, high_b);
    pairs[i + 3] = _mm512_unpackhi_pd(high_a, high_b);
  }
  for (int i = 0; i < 4; ++i) {
    const F32 a = _mm512_castpd_ps(pairs[i]);
    const F32 b = _mm512_castpd_ps(pairs[i + 4]);
    const F32 c = _mm512_castpd_ps(pairs[i + 8]);
    const F32 d = _mm512_castpd_ps(pairs[i + 12]);
    const F32 even_ab = _mm512_shuffle_f32x4(a, b, 0x88);
    const F32 odd_ab = _mm512_shuffle_f32x4(a, b, 0xdd);
    const F32 even_cd = _mm512_shuffle_f32x4(c, d, 0x88);
    const F32 odd_cd = _mm512_shuffle_f32x4(c, d, 0xdd);
    rows[i] = _mm512_shuffle_f32x4(even_ab, even_cd, 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(odd_ab, odd_cd, 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(even_ab, even_cd, 0xdd);
    rows[i + 12] = _mm512_shuffle_f32x4(odd_ab, odd_cd, 0xdd);
  }
}

inline int keep_at_least(const int32_t* values, int32_t threshold, int32_t position, int32_t* kept,
                         int32_t* positions) {
  const __m512i x = _mm512_loadu_si512(values);
  const __mmask16 mask = _mm512_cmpge_epi32_mask(x, _mm512_set1_epi32(threshold));
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32(position));
  // Compress in a register: compressing into memory is microcoded on some processors.
  _mm512_storeu_si512(kept, _mm512_maskz_compress_epi32(mask, x));
  _mm512_storeu_si512(positions, _mm512_maskz_compress_epi32(mask, at));
  return __builtin_popcount(mask);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

// The instruction set portable: 128-bit vectors in the compilers' own vector extension, no
// intrinsics.
#pragma once

#include "scalar.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

typedef float F32 __attribute__((vector_size(16)));
typedef int32_t I32 __attribute__((vector_size(16)));

inline constexpr int kLanes = 4;
inline constexpr int kTileVectors = 2;

inline F32 load(const float* p) {
  F32 x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline void store(float* p, F32 x) { __builtin_memcpy(p, &x, sizeof x); }
inline F32 broadcast(float x) { return F32{x, x, x, x}; }

inline constexpr bool kMultiplyAddIsFused = false;
inline F32 multiply_add(F32 a, F32 b, F32 c) { return a * b + c; }
inline F32 max(F32 a, F32 b) { return a > b ? a : b; }
inline F32 bitwise_and(F32 a, F32 b) {
  return reinterpret_cast<F32>(reinterpret_cast<I32>(a) & reinterpret_cast<I32>(b));
}

inline I32 load(const int32_t* p) {
  I32 x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline void store(int32_t* p, I32 x) { __builtin_memcpy(p, &x, sizeof x); }
inline I32 broadcast_int(int32_t x) { return I32{x, x, x, x}; }
inline I32 max(I32 a, I32 b) { return a > b ? a : b; }
inline F32 to_float(I32 x) { return __builtin_convertvector(x, F32); }
inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  return acc + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
}

inline F32 round(F32 x) {
  const F32 magic = broadcast(12582912.0f);  // 1.5 * 2^23
  return (x + magic) - magic;
}
inline F32 scale_by_power(F32 x, F32 n) {
  const F32 exponent = max(broadcast(-127.0f), n);
  return x * reinterpret_cast<F32>((__builtin_convertvector(exponent, I32) + 127) << 23);
}

inline F32 load(const Bf16* p) {
  return F32{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
}
inline F32 load(const Fp16* p) {
  return F32{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
}
inline F32 load(const int8_t* p) { return to_float(I32{p[0], p[1], p[2], p[3]}); }
struct Int4Numbers {
  F32 scales, shifts;
  Int4Numbers() = default;
  Int4Numbers(float scale, float shift) : scales(broadcast(scale)), shifts(broadcast(shift)) {}
  inline void load(const Int4* p, F32 (&x)[2]) const {
    const I32 bytes{p[0].pair, p[1].pair, p[2].pair, p[3].pair};
    x[0] = multiply_add(to_float(bytes << 28 >> 28), scales, shifts);
    x[1] = multiply_add(to_float(bytes << 24 >> 28), scales, shifts);
  }
};
inline void store(Bf16* p, F32 x) {
  for (int i = 0; i < kLanes; ++i) p[i] = from_float<Bf16>(x[i]);
}
inline void store(Fp16* p, F32 x) {
  for (int i = 0; i < kLanes; ++i) p[i] = from_float<Fp16>(x[i]);
}

inline void reduce_add4(F32 a, F32 b, F32 c, F32 d, float* out) {
  const F32 x[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) out[i] = (x[i][0] + x[i][2]) + (x[i][1] + x[i][3]);
}
inline void reduce_add4(I32 a, I32 b, I32 c, I32 d, int32_t* out) {
  const I32 x[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) out[i] = (x[i][0] + x[i][2]) + (x[i][1] + x[i][3]);
}
inline float reduce_add(F32 x) { return (x[0] + x[2]) + (x[1] + x[3]); }
inline float reduce_max(F32 x) {
  const float a = x[0] > x[1] ? x[0] : x[1];
  const float b = x[2] > x[3] ? x[2] : x[3];
  return a > b ? a : b;
}

inline void transpose(F32 (&rows)[kLanes]) {
  float transposed[kLanes][kLanes];
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < kLanes; ++j) transposed[j][i] = rows[i][j];
  }
  for (int i = 0; i < kLanes; ++i) rows[i] = load(transposed[i]);
}

inline int keep_at_least(const int32_t* values, int32_t threshold, int32_t position, int32_t* kept,
                         int32_t* positions) {
  int count = 0;
  for (int i = 0; i < kLanes; ++i) {
    kept[count] = values[i];
    positions[count] = position + i;
    count += values[i] >= threshold;
  }
  return count;
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

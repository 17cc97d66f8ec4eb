// The instruction set neon_i8mm: neon_bf16 and the matrix product of int8 numbers (FEAT_I8MM). For
// int8 kernels.
#pragma once

#define CUSTOM_PYPTO_CPU_INT8_MATRIX

#include "neon_bf16.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// The eight int8 numbers at `first`, then those at `second`.
inline I32 load_halves(const char* first, const char* second) {
  return vreinterpretq_s32_s8(vcombine_s8(vld1_s8(reinterpret_cast<const int8_t*>(first)),
                                          vld1_s8(reinterpret_cast<const int8_t*>(second))));
}

// acc + the sums of products of eight int8 numbers of a with eight of b, by halves: a.first
// b.first, a.first b.second, a.second b.first, a.second b.second.
inline I32 multiply_halves(I32 acc, I32 a, I32 b) {
  return vmmlaq_s32(acc, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}

// (a.first, b.first) to a, (a.second, b.second) to b.
inline void transpose_halves(I32& a, I32& b) {
  const int64x2_t x = vreinterpretq_s64_s32(a);
  const int64x2_t y = vreinterpretq_s64_s32(b);
  a = vreinterpretq_s32_s64(vzip1q_s64(x, y));
  b = vreinterpretq_s32_s64(vzip2q_s64(x, y));
}

inline constexpr int64_t kInterleaved = 16;
inline void interleave(const int8_t* const* rows, int64_t at, char* out) {
  int16x8x4_t low, high;  // in each lane the numbers of two rows
  for (int i = 0; i < 4; ++i) {
    const int8x16x2_t pairs = vzipq_s8(vld1q_s8(rows[2 * i] + at), vld1q_s8(rows[2 * i + 1] + at));
    low.val[i] = vreinterpretq_s16_s8(pairs.val[0]);
    high.val[i] = vreinterpretq_s16_s8(pairs.val[1]);
  }
  vst4q_s16(reinterpret_cast<int16_t*>(out), low);
  vst4q_s16(reinterpret_cast<int16_t*>(out) + 32, high);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

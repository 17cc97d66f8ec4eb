// The instruction set neon_dot: neon and the dot product of int8 numbers (FEAT_DotProd). For int8
// kernels.
#pragma once

#define CUSTOM_PYPTO_CPU_INT8_DOT

#include "neon.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline constexpr bool kInt8DotIsUnsigned = false;

inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  return vdotq_s32(acc, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}

#ifndef CUSTOM_PYPTO_CPU_INT8_MATRIX
inline constexpr int64_t kInterleaved = 16;
inline void interleave(const int8_t* const* rows, int64_t at, char* out) {
  const int8x16x4_t columns = {{vld1q_s8(rows[0] + at), vld1q_s8(rows[1] + at),
                                vld1q_s8(rows[2] + at), vld1q_s8(rows[3] + at)}};
  vst4q_s8(reinterpret_cast<int8_t*>(out), columns);
}
#endif

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

// The avx512_bf16 level: avx512 and the dot product of bf16 pairs.
#pragma once

#ifndef __AVX512BF16__
#error "compile this file with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16"
#endif

#ifndef CUSTOM_PYPTO_CPU_LEVEL
#define CUSTOM_PYPTO_CPU_LEVEL avx512_bf16
#endif

#include "avx512.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

inline constexpr bool kHasBf16Dot = true;

// acc + a.lo * b.lo + a.hi * b.hi in each lane, where a lane of a and b is a pair of bf16.
// The instruction takes subnormal inputs and results as zero.
inline F32 dot_accumulate(F32 acc, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL

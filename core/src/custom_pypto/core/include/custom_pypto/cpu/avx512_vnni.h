// The instruction set avx512_vnni: avx512 and the dot product of int8 numbers. For int8 kernels.
#pragma once

#define CUSTOM_PYPTO_CPU_INT8_DOT

#include "avx512.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline constexpr bool kHasInt8Dot = true;
inline constexpr bool kInt8DotIsUnsigned = true;

// acc + the sum of a's four int8 times b's four uint8 numbers in each lane.
inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  return reinterpret_cast<I32>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(acc), reinterpret_cast<__m512i>(b), reinterpret_cast<__m512i>(a)));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

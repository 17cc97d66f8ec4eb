// Single numbers: bf16 and fp16 from and to fp32, round to nearest even.
//
// Included by the headers of the instruction sets.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float float_from_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Storage types: distinct, so that overloads and templates can distinguish them.
struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};
// Two numbers of 4 bits, the first in the low half.
struct Int4 {
  uint8_t pair;
};

inline float to_float(float x) { return x; }

inline float to_float(Bf16 x) { return float_from_bits(static_cast<uint32_t>(x.bits) << 16); }

inline float to_float(Fp16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // inf, NaN
    return float_from_bits(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x0400u) {  // zero, subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 5.9604644775390625e-08f;
    return float_from_bits(sign | float_bits(value));
  }
  return float_from_bits(sign | ((magnitude << 13) + 0x38000000u));
}

template <class Element>
inline Element from_float(float x);

template <>
inline float from_float<float>(float x) {
  return x;
}

template <>
inline Bf16 from_float<Bf16>(float x) {
  const uint32_t bits = float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<uint16_t>((bits >> 16) | 0x40u)};  // a quiet NaN
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
inline Fp16 from_float<Fp16>(float x) {
  const uint32_t bits = float_bits(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536 and more
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits.
    half = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return {static_cast<uint16_t>(sign | half)};
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

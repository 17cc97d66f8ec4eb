// Rows of e4m3 numbers as bf16 or fp32, which hold each of them.
#pragma once

#include <custom_pypto_blocks/cpu/vectors.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// The bits of a bf16. Without branches and in 16 bits, so that compilers make vectors of it.
inline uint16_t bf16_bits_of_e4m3(uint8_t x) {
  using Bits = uint16_t;
  // The exponents have a bias of 7 and 127, the mantissas 3 and 7 bits.
  constexpr Bits kOne = 1 << 7;  // of the exponent of a bf16
  const Bits magnitude = x & 0x7f;
  const Bits normal = static_cast<Bits>((magnitude << 4) + (127 - 7) * kOne);
  // Subnormal: multiples of 2^-9. At 1, 2 and 4 another exponent begins.
  constexpr Bits kSmallest = (127 - 9) * kOne;
  const Bits from_4 = static_cast<Bits>((magnitude << 5) + kSmallest + kOne);
  const Bits from_2 = static_cast<Bits>((magnitude << 6) + kSmallest);
  Bits bits = magnitude < 8 ? from_4 : normal;
  bits = magnitude < 4 ? from_2 : bits;
  bits = magnitude < 2 ? static_cast<Bits>(magnitude * kSmallest) : bits;
  bits = magnitude == 0x7f ? static_cast<Bits>(0x7fc0) : bits;  // NaN
  return static_cast<Bits>(bits | static_cast<Bits>((x & 0x80) << 8));
}

inline void widen_number(uint16_t bits, Bf16* out) { out->bits = bits; }
inline void widen_number(uint16_t bits, float* out) { *out = to_float(Bf16{bits}); }

// out[i] = row[i * stride] for i < count, or its negative. Number is Bf16 or float.
template <class Number>
inline void widen_e4m3(const char* row, int64_t stride, int64_t count, bool is_negative,
                       Number* out) {
  const auto* numbers = reinterpret_cast<const uint8_t*>(row);
  const uint16_t sign = is_negative ? 0x8000 : 0;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) widen_number(bf16_bits_of_e4m3(numbers[i]) ^ sign, out + i);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      widen_number(bf16_bits_of_e4m3(numbers[i * stride]) ^ sign, out + i);
    }
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

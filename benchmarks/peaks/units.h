// The arithmetic units of a processor, and the loops that keep each one busy.
//
// Included by the loops, so: no standard library, no torch.
#pragma once

#include <custom_pypto/cpu/level.h>
#include <stdint.h>

namespace custom_pypto_peaks {

struct Unit {
  custom_pypto::Isa isa;
  // Floating-point operations of one round.
  int64_t flop;
  // The sum of what was computed, so that no compiler leaves it out.
  float (*run)(int64_t rounds, float operand);
};

// Reads count * 64 bytes.
uint64_t read(const uint64_t* data, int64_t count);

#if defined(__x86_64__)
extern const Unit avx2_unit;
extern const Unit avx512_unit;
extern const Unit avx512_bf16_unit;
#elif defined(__aarch64__)
extern const Unit neon_unit;
extern const Unit neon_bf16_unit;
#endif

}  // namespace custom_pypto_peaks

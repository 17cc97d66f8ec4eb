// The arithmetic units of a processor, and the loops that keep each one busy.
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <stdint.h>

namespace custom_pypto_peaks {

struct Unit {
  // Multiplications and additions of one round.
  int64_t flop;
  // Returns the sum, so that the compiler keeps the loop.
  float (*run)(int64_t rounds, float operand);
};

// Reads count * 64 bytes.
uint64_t read(const uint64_t* data, int64_t count);

CUSTOM_PYPTO_KERNELS(Unit, unit)
CUSTOM_PYPTO_INT8_KERNELS(Unit, int8_unit)

}  // namespace custom_pypto_peaks

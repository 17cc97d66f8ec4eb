// Rows of queries and keys: from sums to rotated numbers, and from numbers to int8.
#pragma once

#include <custom_pypto_blocks/cpu/widen.h>

#include "prolog_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_lightning_indexer_prolog::HeadTask;

inline void rotate_head(const HeadTask& task) {
  float* values = task.scratch;
  for (int64_t i = 0; i < task.size; ++i) {
    values[i] = static_cast<float>(task.sums[i]) * task.token_scale * task.column_scales[i];
  }
  Bf16* out = static_cast<Bf16*>(task.out);
  narrow(values, task.size, out);
  widen(out, 1, task.rotated, values);
  float* rotated = task.scratch + task.size;
  const int64_t half = task.rotated / 2;
  // Even dims come first, then odd ones.
  for (int64_t i = 0; i < half; ++i) {
    const float even = values[2 * i];
    const float odd = values[2 * i + 1];
    rotated[i] = even * task.cos[i] - odd * task.sin[i];
    rotated[half + i] = odd * task.cos[half + i] + even * task.sin[half + i];
  }
  narrow(rotated, task.rotated, out);
}

inline void quantise(const void* bf16_row, int64_t size, int8_t* out, void* scale, float* scratch) {
  const Bf16* row = static_cast<const Bf16*>(bf16_row);
  // Magnitudes are ordered as their bits are, with inf and then NaN above the rest.
  uint16_t largest = 0;
  for (int64_t i = 0; i < size; ++i) {
    const uint16_t magnitude = row[i].bits & 0x7fff;
    largest = magnitude > largest ? magnitude : largest;
  }
  const float factor = 127.0f / to_float(Bf16{largest});
  *static_cast<Fp16*>(scale) = largest == 0 ? Fp16{0} : from_float<Fp16>(1.0f / factor);
  // Rows of zeros, of numbers too small for a factor, and with inf or NaN, which the scale shows.
  if (largest == 0 || largest >= 0x7f80 || factor > 3.4028235e38f) {
    __builtin_memset(out, 0, static_cast<size_t>(size));
    return;
  }
  widen(row, 1, size, scratch);
  constexpr float kToNearest = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction
  for (int64_t i = 0; i < size; ++i) {
    const float nearest = (scratch[i] * factor + kToNearest) - kToNearest;
    out[i] = static_cast<int8_t>(static_cast<int32_t>(nearest));
  }
}

inline void round_to_bf16(const float* x, int64_t size, void* out) {
  narrow(x, size, static_cast<Bf16*>(out));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

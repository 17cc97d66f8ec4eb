// The scales of queries and keys of 8 bits.
#pragma once

#include "key_cursor.h"
#include "rows.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Replaces scales by their magnitudes. signs[i] is -1 where one is negative, else 0.
inline void split_signs(float* scales, int64_t count, int32_t* signs) {
  for (int64_t i = 0; i < count; ++i) {
    signs[i] = -(scales[i] < 0.0f);
    scales[i] = scales[i] < 0.0f ? -scales[i] : scales[i];
  }
}

// The scales of the next `count` keys.
inline void read_scales(KeyCursor& cursor, const Keys& scales, int64_t count, float* out) {
  while (count > 0) {
    const KeyCursor::Run run = cursor.next_run(count);
    widen_row(run.first, scales.element, scales.token_stride, run.keys, out);
    out += run.keys;
    count -= run.keys;
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

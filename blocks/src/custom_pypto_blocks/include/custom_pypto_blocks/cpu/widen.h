// Rows of numbers: any element type to fp32 and back.
#pragma once

#include "vectors.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// out[i] = row[i * stride] for i < count.
template <class Element>
inline void widen(const Element* row, int64_t stride, int64_t count, float* out) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= count; i += kLanes) store(out + i, load(row + i));
  }
  for (; i < count; ++i) out[i] = to_float(row[i * stride]);
}

// out[i] = row[i] rounded to nearest even, for i < count.
template <class Element>
inline void narrow(const float* row, int64_t count, Element* out) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, load(row + i));
  for (; i < count; ++i) out[i] = from_float<Element>(row[i]);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

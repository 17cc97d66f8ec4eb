// Rows of numbers as int8, with a scale for each row.
#pragma once

#include "int8_linear.h"
#include "quant_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// A row whose numbers are all 0 has scale 0 and zeros. The scale of a row with NaN is NaN.
template <class Element>
void dynamic_quant(const custom_pypto_quant_matmul::DynamicQuantTask& task) {
  const auto* smooth = static_cast<const Element*>(task.smooth);
  const int64_t whole = task.columns / kLanes * kLanes;
  const int64_t rest = task.columns - whole;
  Element last_smooth[kLanes] = {};
  if (smooth != nullptr) {
    __builtin_memcpy(last_smooth, smooth + whole, static_cast<size_t>(rest) * sizeof(Element));
  }
  for (int64_t row = 0; row < task.count; ++row) {
    const auto* numbers = static_cast<const Element*>(task.rows) + row * task.columns;
    Element last[kLanes] = {};
    __builtin_memcpy(last, numbers + whole, static_cast<size_t>(rest) * sizeof(Element));
    const auto smoothed = [&](const Element* from, const Element* factors) {
      const F32 x = load(from);
      return smooth == nullptr ? x : multiply(x, load(factors));
    };
    // As integers, magnitudes are in the same order, and NaN is the largest.
    I32 largest = broadcast_int(0);
    const auto compare = [&](F32 x) {
      largest = max(largest, reinterpret_cast<I32>(x) & broadcast_int(0x7fffffff));
    };
    for (int64_t k = 0; k < whole; k += kLanes) compare(smoothed(numbers + k, smooth + k));
    compare(smoothed(last, last_smooth));
    int32_t lanes[kLanes];
    store(lanes, largest);
    for (int i = 1; i < kLanes; ++i) lanes[0] = lanes[0] > lanes[i] ? lanes[0] : lanes[i];
    const float scale = float_from_bits(static_cast<uint32_t>(lanes[0])) / 127.0f;
    task.scale[row] = scale;
    int8_t* const y = task.y + row * task.columns;
    if (!(scale <= 0x1.fffffep127f)) {  // infinity or NaN
      __builtin_memset(y, 0, static_cast<size_t>(task.columns));
      continue;
    }
    const F32 divisor = broadcast(scale);
    for (int64_t k = 0; k < whole; k += kLanes) {
      store(y + k, divide(smoothed(numbers + k, smooth + k), divisor));
    }
    int8_t last_y[kLanes];
    store(last_y, divide(smoothed(last, last_smooth), divisor));
    __builtin_memcpy(y + whole, last_y, static_cast<size_t>(rest));
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

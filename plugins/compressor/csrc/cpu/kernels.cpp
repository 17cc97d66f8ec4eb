// The kernels of one instruction set, and their table.
#include <custom_pypto_blocks/cpu/exp2.h>
#include <custom_pypto_blocks/cpu/linear.h>
#include <custom_pypto_blocks/cpu/matmul.h>
#include <custom_pypto_blocks/cpu/widen.h>

#include "compressor_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_compressor::kMostTokens;
using RowTask = custom_pypto_compressor::RowTask<float>;

// The channels [first, first + count) of a row; count is kLanes if they are a whole vector.
template <class Out, bool kIsWhole>
inline void compress_lanes(const RowTask& task, int64_t first, int64_t count) {
  const auto read = [&](const float* row) {
    if constexpr (kIsWhole) return load(row + first);
    float lanes[kLanes] = {};
    __builtin_memcpy(lanes, row + first, static_cast<size_t>(count) * sizeof(float));
    return load(lanes);
  };
  const F32 log2_of_e = broadcast(1.4426950408889634f);
  F32 largest = read(task.scores[0]);
  for (int64_t i = 1; i < task.tokens; ++i) largest = max(largest, read(task.scores[i]));
  alignas(64) float powers[kMostTokens * kLanes];
  F32 sum = zero();
  for (int64_t i = 0; i < task.tokens; ++i) {
    const F32 below = subtract(read(task.scores[i]), largest);
    const F32 power = exp2(multiply(below, log2_of_e));
    store(powers + i * kLanes, power);
    sum = add(sum, power);
  }
  const F32 factor = divide(broadcast(1.0f), sum);
  F32 mean = zero();
  for (int64_t i = 0; i < task.tokens; ++i) {
    const F32 weight = multiply(load(powers + i * kLanes), factor);
    mean = multiply_add(weight, read(task.kv[i]), mean);
    if (task.weights == nullptr) continue;
    store(powers + i * kLanes, weight);
    __builtin_memcpy(task.weights + i * task.channels + first, powers + i * kLanes,
                     static_cast<size_t>(count) * sizeof(float));
  }
  float lanes[kLanes];
  store(lanes, mean);
  narrow(lanes, count, static_cast<Out*>(task.out) + first);
}

template <class Out>
void compress(const RowTask& task) {
  int64_t first = 0;
  for (; first + kLanes <= task.channels; first += kLanes) {
    compress_lanes<Out, true>(task, first, kLanes);
  }
  if (first < task.channels) compress_lanes<Out, false>(task, first, task.channels - first);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

namespace custom_pypto_compressor {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kLinear<float, float>, isa::kLinear<isa::Fp16, float>, isa::kLinear<isa::Bf16, float>},
    isa::kMatmul<float>,
    {&isa::compress<float>, &isa::compress<isa::Fp16>, &isa::compress<isa::Bf16>},
};

}  // namespace custom_pypto_compressor

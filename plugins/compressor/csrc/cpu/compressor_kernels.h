// The kernels of the ops, compiled for each instruction set, and those of this process: kernels().
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
#include <custom_pypto_blocks/cpu/linear_task.h>
#include <custom_pypto_blocks/cpu/matmul_task.h>
#include <stdint.h>

namespace custom_pypto_compressor {

// The most tokens of a compressed row: two windows of 128.
inline constexpr int64_t kMostTokens = 256;

// One compressed row. In each channel it is the sum of kv over the tokens, weighted by the softmax
// of their scores. Weights and sum are computed in the order of the tokens.
template <class Real>
struct RowTask {
  const Real* const* kv;      // for each token its [channels]
  const Real* const* scores;  // the same
  int64_t tokens;             // from 1 to kMostTokens
  int64_t channels;
  void* out;      // [channels]
  Real* weights;  // [tokens, channels], or null
};

// Arrays have an entry for each Element.
struct KernelTable {
  // To fp32.
  custom_pypto::cpu::LinearKernel linear[custom_pypto::kFloatElements];
  // Of fp32 matrices, for the gradient.
  custom_pypto::cpu::MatmulKernel matmul;
  void (*compress[custom_pypto::kFloatElements])(const RowTask<float>& task);
};

CUSTOM_PYPTO_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_compressor

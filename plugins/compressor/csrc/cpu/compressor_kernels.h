// The kernels of the ops, compiled for each instruction set, and those of this process: kernels().
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
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

// out[r, c] = the sum over k of rows[r, k] * weight[c, k], for the columns [first, last) of `out`.
// Rows and weights are contiguous. A number of `out` depends on its row and its weights alone.
struct ProductTask {
  const void* rows;
  int64_t count;
  int64_t depth;
  const void* weight;
  int64_t first;
  int64_t last;
  float* out;
  int64_t out_stride;
  char* scratch;  // product_scratch(depth, count) bytes, aligned as Scratch is
};

// Arrays have an entry for each Element.
struct KernelTable {
  void (*product[custom_pypto::kFloatElements])(const ProductTask& task);
  int64_t (*product_scratch[custom_pypto::kFloatElements])(int64_t depth, int64_t count);
  // Of fp32 matrices, for the gradient.
  custom_pypto::cpu::MatmulKernel matmul;
  void (*compress[custom_pypto::kFloatElements])(const RowTask<float>& task);
};

CUSTOM_PYPTO_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_compressor

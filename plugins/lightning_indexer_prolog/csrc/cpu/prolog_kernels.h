// The op's kernels, compiled for each instruction set; kernels() returns this process's.
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/matmul_task.h>
#include <stdint.h>

namespace custom_pypto_lightning_indexer_prolog {

// One head of one token's query, from its int32 sums to rotated bf16 numbers.
struct HeadTask {
  const int32_t* sums;  // [size]
  float token_scale;
  const float* column_scales;  // [size]
  int64_t size;
  int64_t rotated;   // so many dims at the front
  const float* sin;  // [rotated]
  const float* cos;  // [rotated]
  void* out;         // bf16 [size]
  float* scratch;    // [size + rotated]
};

struct KernelTable {
  custom_pypto::cpu::MatmulKernel int8;
  custom_pypto::cpu::MatmulKernel bf16;
  custom_pypto::cpu::MatmulKernel fp32;

  void (*rotate_head)(const HeadTask& task);

  // The row's numbers as int8 times the fp16 `scale`, which is its largest magnitude / 127.
  // scratch: [size].
  void (*quantise)(const void* bf16_row, int64_t size, int8_t* out, void* scale, float* scratch);

  // out[i] = x[i] rounded to bf16.
  void (*round_to_bf16)(const float* x, int64_t size, void* out);
};

CUSTOM_PYPTO_BF16_INT8_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_lightning_indexer_prolog

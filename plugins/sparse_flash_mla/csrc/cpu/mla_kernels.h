// The kernels of the ops, compiled for each instruction set, and those of this process: kernels().
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
#include <custom_pypto_blocks/cpu/matmul_task.h>
#include <custom_pypto_sparse_attention/attend_task.h>

namespace custom_pypto_sparse_flash_mla {

struct KernelTable {
  custom_pypto::cpu::MatmulKernel matmul;  // in fp32, for gradients
  custom_pypto_sparse_attention::AttendKernels attend[custom_pypto::kFloatElements];
  int64_t attend_panel;  // heads that are computed side by side
};

CUSTOM_PYPTO_BF16_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_sparse_flash_mla

// The ops' kernels, compiled for each instruction set; kernels() returns this process's.
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
#include <custom_pypto_blocks/cpu/matmul_task.h>
#include <custom_pypto_sparse_attention/attend_task.h>

namespace custom_pypto_sparse_attention {

using custom_pypto::Element;
using custom_pypto::kFloatElements;

struct KernelTable {
  custom_pypto::cpu::MatmulKernel matmul[kFloatElements];
  AttendKernels attend[kFloatElements];
  int64_t attend_panel;  // heads that are computed side by side
};

CUSTOM_PYPTO_BF16_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_sparse_attention

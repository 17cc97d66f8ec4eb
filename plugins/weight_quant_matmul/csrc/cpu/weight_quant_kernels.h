// The kernels of weight_quant_matmul, compiled for each instruction set, and those of this process:
// kernels().
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
#include <custom_pypto_blocks/cpu/linear_task.h>

namespace custom_pypto_weight_quant_matmul {

// An entry for each Element of the rows.
struct KernelTable {
  custom_pypto::cpu::LinearKernel int8[custom_pypto::kFloatElements];
  custom_pypto::cpu::LinearKernel int4[custom_pypto::kFloatElements];
};

CUSTOM_PYPTO_BF16_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_weight_quant_matmul

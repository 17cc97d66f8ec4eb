// The kernels of linear, compiled for each instruction set, and those of this process: kernels().
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
#include <custom_pypto_blocks/cpu/linear_task.h>

namespace custom_pypto_linear {

// An entry for each Element.
struct KernelTable {
  custom_pypto::cpu::LinearKernel linear[custom_pypto::kFloatElements];
};

CUSTOM_PYPTO_BF16_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_linear

// The kernels of the plugin, compiled for each instruction set, and those of this process:
// kernels().
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>

#include "int8_linear_task.h"

namespace custom_pypto_quant_matmul {

// y = rows times smooth as int8, and a scale for each row.
struct DynamicQuantTask {
  const void* rows;
  const void* smooth;  // or null
  int64_t count;
  int64_t columns;
  int8_t* y;
  float* scale;
};

enum class Out : int { int8, int32, fp16, bf16 };

struct KernelTable {
  custom_pypto::cpu::Int8LinearKernel linear[4];  // for each Out
  void (*dynamic_quant[custom_pypto::kFloatElements])(const DynamicQuantTask& task);
};

CUSTOM_PYPTO_INT8_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_quant_matmul

// The CPU kernels of add_custom: a table of functions, compiled for each instruction set.
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <stdint.h>

namespace custom_pypto_add_custom {

// out[i] = self[i] + other[i] for i < count.
using Add = void(const void* self, const void* other, void* out, int64_t count);

struct Kernels {
  Add* float16;
  Add* bfloat16;
  Add* float32;
  Add* float64;
  Add* int32;
  Add* int64;
};

// kernels() is the table of the instruction set of this process.
CUSTOM_PYPTO_KERNELS(Kernels, kernels)

}  // namespace custom_pypto_add_custom

// The kernels of the op, compiled for each instruction set, and those of this process: kernels().
#pragma once

#include <custom_pypto/cpu/kernels.h>
#include <stdint.h>

namespace custom_pypto_add_custom {

// out[i] = self[i * self_step] + other[i * other_step] for i < count; steps are in elements.
using AddRow = void(const void* self, int64_t self_step, const void* other, int64_t other_step,
                    void* out, int64_t count);

struct Kernels {
  AddRow* f16;
  AddRow* bf16;
  AddRow* f32;
  AddRow* f64;
  AddRow* i32;
  AddRow* i64;
};

CUSTOM_PYPTO_KERNELS(Kernels, kernels)

}  // namespace custom_pypto_add_custom

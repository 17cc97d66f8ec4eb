// What the op asks of an instruction set level, and the tables of the levels.
//
// Included by the op and by the kernels, so: no standard library, no torch.
#pragma once

#include <custom_pypto/cpu/level.h>
#include <stdint.h>

namespace custom_pypto_add_custom {

// out[i] = self[i * self_step] + other[i * other_step] for i < count; steps are in elements.
using AddRow = void(const void* self, int64_t self_step, const void* other, int64_t other_step,
                    void* out, int64_t count);

struct Kernels {
  custom_pypto::Isa isa;
  AddRow* f16;
  AddRow* bf16;
  AddRow* f32;
  AddRow* f64;
  AddRow* i32;
  AddRow* i64;
};

extern const Kernels portable_kernels;
#if defined(__x86_64__)
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;
#elif defined(__aarch64__)
extern const Kernels neon_kernels;
extern const Kernels neon_bf16_kernels;
#endif

}  // namespace custom_pypto_add_custom

#include "kernel_choice.h"

#include <custom_pypto/isa.h>

#include <stdexcept>

namespace custom_pypto_add_custom {

const Kernels& kernels() {
  static const Kernels& chosen = custom_pypto::choose_kernels<Kernels>({
      &portable_kernels,
#if defined(__x86_64__)
      &avx2_kernels,
      &avx512_kernels,
#elif defined(__aarch64__)
      &neon_kernels,
      &neon_bf16_kernels,
#endif
  });
  return chosen;
}

}  // namespace custom_pypto_add_custom

// The name of the instruction set level that this plugin's kernels use, or null when
// CUSTOM_PYPTO_CPU_ISA names none that the machine has.
CUSTOM_PYPTO_EXPORT const char* custom_pypto_cpu_isa_v1() noexcept {
  try {
    return custom_pypto::isa_name(custom_pypto_add_custom::kernels().isa);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

#include "kernel_choice.h"

#include <custom_pypto/isa.h>

#include <stdexcept>

namespace custom_pypto_sparse_attention {

const KernelTable& kernels() {
  static const KernelTable& chosen = custom_pypto::choose_kernels<KernelTable>({
      &kPortableKernels,
#if defined(__x86_64__)
      &kAvx2Kernels,
      &kAvx512Kernels,
      &kAvx512Bf16Kernels,
#elif defined(__aarch64__)
      &kNeonKernels,
      &kNeonBf16Kernels,
#endif
  });
  return chosen;
}

}  // namespace custom_pypto_sparse_attention

// The name of the instruction set level that this plugin's kernels use, or null when
// CUSTOM_PYPTO_CPU_ISA names none that the machine has.
CUSTOM_PYPTO_EXPORT const char* custom_pypto_cpu_isa_v1() noexcept {
  try {
    return custom_pypto::isa_name(custom_pypto_sparse_attention::kernels().isa);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

#include "kernel_choice.h"

#include <custom_pypto/isa.h>

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

CUSTOM_PYPTO_TELL_CPU_ISA(custom_pypto_sparse_attention::kernels())

#include "kernel_choice.h"

#include <custom_pypto/isa.h>

namespace custom_pypto_lightning_indexer {

const Kernels& kernels() {
  static const Kernels& chosen = custom_pypto::choose_kernels<Kernels>({
      &portable_kernels,
#if defined(__x86_64__)
      &avx2_kernels,
      &avx512_kernels,
      &avx512_bf16_kernels,
#elif defined(__aarch64__)
      &neon_kernels,
      &neon_bf16_kernels,
#endif
  });
  return chosen;
}

}  // namespace custom_pypto_lightning_indexer

CUSTOM_PYPTO_TELL_CPU_ISA(custom_pypto_lightning_indexer::kernels())

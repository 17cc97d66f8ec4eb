#include <custom_pypto/cpu/neon_bf16.h>

#include "table.h"

namespace custom_pypto_sparse_attention {

const KernelTable kNeonBf16Kernels = custom_pypto::cpu::neon_bf16::kTable;

}  // namespace custom_pypto_sparse_attention

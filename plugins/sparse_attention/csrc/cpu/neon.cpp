#include <custom_pypto/cpu/neon.h>

#include "table.h"

namespace custom_pypto_sparse_attention {

const KernelTable kNeonKernels = custom_pypto::cpu::neon::kTable;

}  // namespace custom_pypto_sparse_attention

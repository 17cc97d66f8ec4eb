#include <custom_pypto/cpu/avx2.h>

#include "table.h"

namespace custom_pypto_sparse_attention {

const KernelTable kAvx2Kernels = custom_pypto::cpu::avx2::kTable;

}  // namespace custom_pypto_sparse_attention

#include <custom_pypto/cpu/avx512.h>

#include "table.h"

namespace custom_pypto_sparse_attention {

const KernelTable kAvx512Kernels = custom_pypto::cpu::avx512::kTable;

}  // namespace custom_pypto_sparse_attention

#include <custom_pypto/cpu/avx512_bf16.h>

#include "table.h"

namespace custom_pypto_sparse_attention {

const KernelTable kAvx512Bf16Kernels = custom_pypto::cpu::avx512_bf16::kTable;

}  // namespace custom_pypto_sparse_attention

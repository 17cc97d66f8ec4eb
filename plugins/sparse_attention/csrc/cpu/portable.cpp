#include <custom_pypto/cpu/portable.h>

#include "table.h"

namespace custom_pypto_sparse_attention {

const KernelTable kPortableKernels = custom_pypto::cpu::portable::kTable;

}  // namespace custom_pypto_sparse_attention

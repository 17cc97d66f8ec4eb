// The table of kernels of one instruction set.
#include "indexer_kernels.h"
#include "score.h"
#include "top_k.h"

namespace custom_pypto_lightning_indexer {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr Kernels CUSTOM_PYPTO_OF_ISA(kernels) = {
    {&isa::packed_row_bytes, &isa::pack, &isa::score_scratch_bytes, &isa::score},
    {&isa::select_scratch_bytes, &isa::select},
};

}  // namespace custom_pypto_lightning_indexer

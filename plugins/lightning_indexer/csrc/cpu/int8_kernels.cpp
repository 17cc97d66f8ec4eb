// The table of int8 kernels of one instruction set.
#include "int8_score.h"
#include "kernels.h"

namespace custom_pypto_lightning_indexer {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr ScoreKernels CUSTOM_PYPTO_OF_ISA(int8_kernels) = {&isa::packed_row_bytes, &isa::pack,
                                                            &isa::score_scratch_bytes, &isa::score};

}  // namespace custom_pypto_lightning_indexer

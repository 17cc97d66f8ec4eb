// The table of int8 kernels of one instruction set.
#if defined(__GNUC__) && !defined(__clang__)
// Without it, sums of a tile that start from the same number share a register at first, and GCC
// keeps some of them in memory through the loop.
#pragma GCC optimize("no-tree-coalesce-vars")
#endif

#include "indexer_kernels.h"
#include "int8_score.h"

namespace custom_pypto_lightning_indexer {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr ScoreKernels CUSTOM_PYPTO_OF_ISA(int8_kernels) = {&isa::packed_row_bytes, &isa::pack,
                                                            &isa::score_scratch_bytes, &isa::score};

}  // namespace custom_pypto_lightning_indexer

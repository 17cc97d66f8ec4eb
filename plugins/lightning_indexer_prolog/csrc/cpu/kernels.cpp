// The table of kernels of one instruction set.
#include <custom_pypto_blocks/cpu/matmul.h>

#include "prolog_kernels.h"
#include "rows.h"

namespace custom_pypto_lightning_indexer_prolog {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    isa::kMatmul<int8_t>, isa::kMatmul<isa::Bf16>, isa::kMatmul<float>,
    &isa::rotate_head,    &isa::quantise,          &isa::round_to_bf16,
};

}  // namespace custom_pypto_lightning_indexer_prolog

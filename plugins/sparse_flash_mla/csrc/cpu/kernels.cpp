// The table of kernels of one instruction set.
#include <custom_pypto_blocks/cpu/matmul.h>
#include <custom_pypto_sparse_attention/cpu/attend.h>

#include "mla_kernels.h"

namespace custom_pypto_sparse_flash_mla {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

// Kernels of attention in the order of Element.
constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    isa::kMatmul<float>,
    {isa::kAttend<float>, isa::kAttend<isa::Fp16>, isa::kAttend<isa::Bf16>},
    isa::kPanel,
};

}  // namespace custom_pypto_sparse_flash_mla

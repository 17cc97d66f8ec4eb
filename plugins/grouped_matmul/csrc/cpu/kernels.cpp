// The table of kernels of one instruction set.
#include <custom_pypto_blocks/cpu/linear.h>

#include "linear_kernels.h"

namespace custom_pypto_grouped_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kLinear<float, float>, isa::kLinear<isa::Fp16, isa::Fp16>,
     isa::kLinear<isa::Bf16, isa::Bf16>},
};

}  // namespace custom_pypto_grouped_matmul

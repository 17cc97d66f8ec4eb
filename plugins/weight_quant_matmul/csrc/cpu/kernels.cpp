// The table of kernels of one instruction set.
#include <custom_pypto_blocks/cpu/linear.h>

#include "weight_quant_kernels.h"

namespace custom_pypto_weight_quant_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kLinear<float, float, int8_t>, isa::kLinear<isa::Fp16, isa::Fp16, int8_t>,
     isa::kLinear<isa::Bf16, isa::Bf16, int8_t>},
    {isa::kLinear<float, float, isa::Int4>, isa::kLinear<isa::Fp16, isa::Fp16, isa::Int4>,
     isa::kLinear<isa::Bf16, isa::Bf16, isa::Int4>},
};

}  // namespace custom_pypto_weight_quant_matmul

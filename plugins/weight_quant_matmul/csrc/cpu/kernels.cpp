// The table of kernels of one instruction set.
#include <custom_pypto_linear/cpu/tile_linear.h>

#include "weight_quant_kernels.h"

namespace custom_pypto_weight_quant_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kFastLinear<float, int8_t>, isa::kFastLinear<isa::Fp16, int8_t>,
     isa::kFastLinear<isa::Bf16, int8_t>},
    {isa::kFastLinear<float, isa::Int4>, isa::kFastLinear<isa::Fp16, isa::Int4>,
     isa::kFastLinear<isa::Bf16, isa::Int4>},
};

}  // namespace custom_pypto_weight_quant_matmul

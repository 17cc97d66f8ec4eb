// The table of kernels of one instruction set.
#include <custom_pypto_weight_quant_matmul/cpu/integer_linear.h>

#include "weight_quant_kernels.h"

namespace custom_pypto_weight_quant_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kIntegerLinear<float, int8_t>, isa::kIntegerLinear<isa::Fp16, int8_t>,
     isa::kIntegerLinear<isa::Bf16, int8_t>},
    {isa::kIntegerLinear<float, isa::Int4>, isa::kIntegerLinear<isa::Fp16, isa::Int4>,
     isa::kIntegerLinear<isa::Bf16, isa::Int4>},
};

}  // namespace custom_pypto_weight_quant_matmul

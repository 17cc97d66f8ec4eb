// The table of kernels of one instruction set.
#include <custom_pypto_weight_quant_matmul/cpu/integer_linear.h>

#include "linear_kernels.h"

namespace custom_pypto_grouped_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;
using isa::Bf16, isa::Fp16, isa::Int4, isa::kIntegerLinear, isa::kLinear;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {kLinear<float, float>, kLinear<Fp16, Fp16>, kLinear<Bf16, Bf16>},
    {{}, kIntegerLinear<Fp16, int8_t>, kIntegerLinear<Bf16, int8_t>},
    {{}, kIntegerLinear<Fp16, Int4>, kIntegerLinear<Bf16, Int4>},
};

}  // namespace custom_pypto_grouped_matmul

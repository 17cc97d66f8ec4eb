// The table of kernels of one instruction set.
#include <custom_pypto_linear/cpu/tile_linear.h>

#include "linear_kernels.h"

namespace custom_pypto_grouped_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;
using isa::Bf16, isa::Fp16, isa::Int4, isa::kFastLinear;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {kFastLinear<float>, kFastLinear<Fp16>, kFastLinear<Bf16>},
    {{}, kFastLinear<Fp16, int8_t>, kFastLinear<Bf16, int8_t>},
    {{}, kFastLinear<Fp16, Int4>, kFastLinear<Bf16, Int4>},
};

}  // namespace custom_pypto_grouped_matmul

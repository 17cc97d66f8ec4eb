// The table of kernels of one instruction set.
#include <custom_pypto_linear/cpu/tile_linear.h>

#include "linear_kernels.h"

namespace custom_pypto_linear {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kFastLinear<float>, isa::kFastLinear<isa::Fp16>, isa::kFastLinear<isa::Bf16>},
};

}  // namespace custom_pypto_linear

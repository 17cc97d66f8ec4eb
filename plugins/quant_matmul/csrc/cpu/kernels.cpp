// The table of kernels of one instruction set.
#include "dynamic_quant.h"
#include "int8_linear.h"
#include "quant_kernels.h"

namespace custom_pypto_quant_matmul {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kInt8Linear<int8_t>, isa::kInt8Linear<int32_t>, isa::kInt8Linear<isa::Fp16>,
     isa::kInt8Linear<isa::Bf16>},
    {&isa::dynamic_quant<float>, &isa::dynamic_quant<isa::Fp16>, &isa::dynamic_quant<isa::Bf16>},
};

}  // namespace custom_pypto_quant_matmul

// The table of kernels of one instruction set.
#include "kernels.h"

#include <custom_pypto/cpu/matmul.h>

#include "attend.h"

namespace custom_pypto_sparse_attention {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

// Entries in the order of Element.
constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kMatmul<float>, isa::kMatmul<isa::Fp16>, isa::kMatmul<isa::Bf16>},
    {&isa::Attend<float>::start, &isa::Attend<isa::Fp16>::start, &isa::Attend<isa::Bf16>::start},
    {&isa::Attend<float>::run_range, &isa::Attend<isa::Fp16>::run_range,
     &isa::Attend<isa::Bf16>::run_range},
    {&isa::Attend<float>::merge, &isa::Attend<isa::Fp16>::merge, &isa::Attend<isa::Bf16>::merge},
    {&isa::Attend<float>::write, &isa::Attend<isa::Fp16>::write, &isa::Attend<isa::Bf16>::write},
    isa::kPanel,
    {&isa::Attend<float>::scratch_bytes, &isa::Attend<isa::Fp16>::scratch_bytes,
     &isa::Attend<isa::Bf16>::scratch_bytes},
    {&isa::Attend<float>::partial_bytes, &isa::Attend<isa::Fp16>::partial_bytes,
     &isa::Attend<isa::Bf16>::partial_bytes},
};

}  // namespace custom_pypto_sparse_attention

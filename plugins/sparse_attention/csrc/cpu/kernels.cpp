// The table of kernels of one instruction set.
#include <custom_pypto_blocks/cpu/matmul.h>

#include "attend.h"
#include "attention_kernels.h"

namespace custom_pypto_sparse_attention {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

namespace {

template <class Element>
constexpr AttendKernels kAttend = {
    &isa::Attend<Element>::start,         &isa::Attend<Element>::run_range,
    &isa::Attend<Element>::merge,         &isa::Attend<Element>::write,
    &isa::Attend<Element>::scratch_bytes, &isa::Attend<Element>::partial_bytes,
};

}  // namespace

// Entries in the order of Element.
constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {isa::kMatmul<float>, isa::kMatmul<isa::Fp16>, isa::kMatmul<isa::Bf16>},
    {kAttend<float>, kAttend<isa::Fp16>, kAttend<isa::Bf16>},
    isa::kPanel,
};

}  // namespace custom_pypto_sparse_attention

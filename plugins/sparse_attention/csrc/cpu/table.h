// The table of this level. Include after custom_pypto/cpu/<level>.h.
#pragma once

#include "attend.h"
#include "matmul.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

// Entries in the order of custom_pypto_sparse_attention::Element.
inline constexpr custom_pypto_sparse_attention::KernelTable kTable = {
    custom_pypto::Isa::CUSTOM_PYPTO_CPU_LEVEL,
    {&MatmulPanels<float>::run, &MatmulPanels<Fp16>::run, &MatmulPanels<Bf16>::run},
    kPanel,
    MatmulPanels<float>::scratch_bytes(),
    {&Attend<float>::start, &Attend<Fp16>::start, &Attend<Bf16>::start},
    {&Attend<float>::run_range, &Attend<Fp16>::run_range, &Attend<Bf16>::run_range},
    {&Attend<float>::merge, &Attend<Fp16>::merge, &Attend<Bf16>::merge},
    {&Attend<float>::write, &Attend<Fp16>::write, &Attend<Bf16>::write},
    kPanel,
    {&Attend<float>::scratch_bytes, &Attend<Fp16>::scratch_bytes, &Attend<Bf16>::scratch_bytes},
    {&Attend<float>::partial_bytes, &Attend<Fp16>::partial_bytes, &Attend<Bf16>::partial_bytes},
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL

// The table of kernels of one instruction set.
#include "mhc_kernels.h"
#include "post.h"
#include "pre.h"
#include "pre_grad.h"
#include "sinkhorn.h"

namespace custom_pypto_mhc {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

namespace {
template <class Element>
constexpr Kernels kKernels = {
    &isa::mix<Element>,
    &isa::pre<Element>,
    &isa::pre_grad_tokens<Element>,
    &isa::pre_grad_columns<Element>,
    {&isa::post<Element, 4>, &isa::post<Element, 6>, &isa::post<Element, 8>},
    {&isa::post_grad<Element, 4>, &isa::post_grad<Element, 6>, &isa::post_grad<Element, 8>},
};
}  // namespace

constexpr KernelTable CUSTOM_PYPTO_OF_ISA(kernels) = {
    {kKernels<float>, kKernels<isa::Fp16>, kKernels<isa::Bf16>, kKernels<double>},
    {{&isa::sinkhorn<float, 4>, &isa::sinkhorn<float, 6>, &isa::sinkhorn<float, 8>},
     {&isa::sinkhorn<double, 4>, &isa::sinkhorn<double, 6>, &isa::sinkhorn<double, 8>}},
    {{&isa::sinkhorn_grad<float, 4>, &isa::sinkhorn_grad<float, 6>, &isa::sinkhorn_grad<float, 8>},
     {&isa::sinkhorn_grad<double, 4>, &isa::sinkhorn_grad<double, 6>,
      &isa::sinkhorn_grad<double, 8>}},
    &isa::round_to_hf32,
};

}  // namespace custom_pypto_mhc

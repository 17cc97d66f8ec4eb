// The kernels of NPUs that mhc.cpp registers.
#pragma once

#include "ops.h"

namespace custom_pypto_mhc {

template <class Op>
using Kernel = void(const typename Op::Arguments& a, const typename Op::CallShape& s,
                    const typename Op::Outputs& out);

Kernel<ops::npu_mhc_pre> pre_npu;
Kernel<ops::npu_mhc_pre_backward> pre_grad_npu;
Kernel<ops::npu_mhc_sinkhorn> sinkhorn_npu;
Kernel<ops::npu_mhc_sinkhorn_backward> sinkhorn_grad_npu;
Kernel<ops::npu_mhc_post> post_npu;
Kernel<ops::npu_mhc_post_backward> post_grad_npu;

}  // namespace custom_pypto_mhc

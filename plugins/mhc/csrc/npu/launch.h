// The ops of hyper-connections on NPUs.
#pragma once

#include "ops.h"

namespace custom_pypto_mhc::npu {

void pre(const ops::npu_mhc_pre::Arguments& a, const ops::npu_mhc_pre::CallShape& s,
         const ops::npu_mhc_pre::Outputs& out);
void pre_grad(const ops::npu_mhc_pre_backward::Arguments& a,
              const ops::npu_mhc_pre_backward::CallShape& s,
              const ops::npu_mhc_pre_backward::Outputs& out);
void sinkhorn(const ops::npu_mhc_sinkhorn::Arguments& a, const ops::npu_mhc_sinkhorn::CallShape& s,
              const ops::npu_mhc_sinkhorn::Outputs& out);
void sinkhorn_grad(const ops::npu_mhc_sinkhorn_backward::Arguments& a,
                   const ops::npu_mhc_sinkhorn_backward::CallShape& s,
                   const ops::npu_mhc_sinkhorn_backward::Outputs& out);
void post(const ops::npu_mhc_post::Arguments& a, const ops::npu_mhc_post::CallShape& s,
          const ops::npu_mhc_post::Outputs& out);
void post_grad(const ops::npu_mhc_post_backward::Arguments& a,
               const ops::npu_mhc_post_backward::CallShape& s,
               const ops::npu_mhc_post_backward::Outputs& out);

}  // namespace custom_pypto_mhc::npu

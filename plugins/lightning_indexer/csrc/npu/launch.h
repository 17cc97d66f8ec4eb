// The ops' kernels for NPUs.
#pragma once

#include "ops.h"

namespace custom_pypto_lightning_indexer::npu {

// Each launches the machine's aclnn kernel, unless a result is empty or known without it. Lengths
// and block_table stay on the device: their values are not checked, and nothing waits for the
// device.
void launch(const ops::npu_lightning_indexer_pto::Arguments& arguments,
            const ops::npu_lightning_indexer_pto::CallShape& sizes,
            const ops::npu_lightning_indexer_pto::Outputs& out);
void launch_quant(const ops::npu_quant_lightning_indexer::Arguments& arguments,
                  const ops::npu_quant_lightning_indexer::CallShape& sizes,
                  const ops::npu_quant_lightning_indexer::Outputs& out);
void launch_values(const ops::npu_lightning_indexer::Arguments& arguments,
                   const ops::npu_lightning_indexer::CallShape& sizes,
                   const ops::npu_lightning_indexer::Outputs& out);
void launch_grad(const ops::npu_lightning_indexer_grad::Arguments& arguments,
                 const ops::npu_lightning_indexer_grad::CallShape& sizes,
                 const ops::npu_lightning_indexer_grad::Outputs& out);
void launch_v2(const ops::npu_lightning_indexer_v2::Arguments& arguments,
               const ops::npu_lightning_indexer_v2::CallShape& sizes,
               const ops::npu_lightning_indexer_v2::Outputs& out);
void launch_quant_v2(const ops::npu_quant_lightning_indexer_v2::Arguments& arguments,
                     const ops::npu_quant_lightning_indexer_v2::CallShape& sizes,
                     const ops::npu_quant_lightning_indexer_v2::Outputs& out);

}  // namespace custom_pypto_lightning_indexer::npu

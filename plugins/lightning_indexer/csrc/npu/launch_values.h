// npu_lightning_indexer and its gradient on NPUs.
#pragma once

#include "ops.h"

namespace custom_pypto_lightning_indexer::npu {

// By CANN's aclnnLightningIndexer.
void launch_values(const ops::npu_lightning_indexer::Arguments& arguments,
                   const ops::npu_lightning_indexer::Sizes& sizes,
                   const ops::npu_lightning_indexer::Outputs& out);

// By CANN's aclnnLightningIndexerGrad.
void launch_grad(const ops::npu_lightning_indexer_grad::Arguments& arguments,
                 const ops::npu_lightning_indexer_grad::Sizes& sizes,
                 const ops::npu_lightning_indexer_grad::Outputs& out);

}  // namespace custom_pypto_lightning_indexer::npu

// The ops on an NPU whose launch ops.toml cannot say. They queue their work and do not wait for it.
#pragma once

#include "attention.h"

namespace custom_pypto_sparse_flash_mla::npu {

// Launches CANN's aclnnSparseFlashMlaGrad.
Grad::Outputs attention_grad(const Grad::Arguments& arguments, const Grad::CallShape& sizes);

// Launches CANN's aclnnSparseFlashMlaMetadata, with the defaults of CANN for None.
Metadata::Outputs metadata(const Metadata::Arguments& arguments, const Metadata::CallShape& sizes);

}  // namespace custom_pypto_sparse_flash_mla::npu

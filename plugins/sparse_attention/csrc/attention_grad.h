// The gradients of attention on the CPU.
#pragma once

#include "common.h"

namespace custom_pypto_sparse_attention {

// The bits do not depend on the number of threads.
void attention_grad(const ops::npu_sparse_flash_attention_grad::Arguments& arguments,
                    const ops::npu_sparse_flash_attention_grad::Sizes& sizes,
                    const ops::npu_sparse_flash_attention_grad::Outputs& outputs);

}  // namespace custom_pypto_sparse_attention

// The gradients of the scores of selected keys.
#pragma once

#include "ops.h"

namespace custom_pypto_lightning_indexer {

// The bits do not depend on the number of threads. Throws std::runtime_error, naming the argument
// and its value, for lengths and positions that the op does not take.
void grad_of_selected(const ops::npu_lightning_indexer_grad::Arguments& arguments,
                      const ops::npu_lightning_indexer_grad::Sizes& sizes,
                      const ops::npu_lightning_indexer_grad::Outputs& out);

}  // namespace custom_pypto_lightning_indexer

// The scores of keys that have been selected, and the gradients of these scores.
#pragma once

#include "ops.h"

namespace custom_pypto_lightning_indexer {

// Fills out.sparse_values from out.sparse_indices, whose positions exist.
void score_selected(const ops::npu_lightning_indexer::Arguments& arguments,
                    const ops::npu_lightning_indexer::Sizes& sizes,
                    const ops::npu_lightning_indexer::Outputs& out);

// The bits do not depend on the number of threads. Throws std::runtime_error, naming the argument
// and its value, for lengths and positions that the op does not take.
void grad_of_selected(const ops::npu_lightning_indexer_grad::Arguments& arguments,
                      const ops::npu_lightning_indexer_grad::Sizes& sizes,
                      const ops::npu_lightning_indexer_grad::Outputs& out);

}  // namespace custom_pypto_lightning_indexer

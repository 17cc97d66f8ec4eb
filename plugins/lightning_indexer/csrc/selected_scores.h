// The scores of keys that have been selected.
#pragma once

#include "problem.h"

namespace custom_pypto_lightning_indexer {

// Fills `values` from `indices`, whose positions exist.
void score_selected(const Call& call, const Tensor& indices, const Tensor& values);

}  // namespace custom_pypto_lightning_indexer

#pragma once

#include "problem.h"

namespace custom_pypto_lightning_indexer::npu {

// Throws std::runtime_error, naming the argument, the limit and the way out, for what
// aclnnLightningIndexer, CANN's own kernel, cannot be given. The arguments have passed
// check_arguments. limits.py says the same for graphs.
void check_limits(const Arguments& arguments);

}  // namespace custom_pypto_lightning_indexer::npu

// The op on an NPU. It queues its work and does not wait for it; the values of slots are not
// checked.
#pragma once

#include "ops.h"

namespace custom_pypto_lightning_indexer_prolog::npu {

// Launches an opp package's aclnnLightningIndexerPrologPto if it takes the arguments, else stock
// torch ops and CANN's product of int8 matrices.
ops::npu_lightning_indexer_prolog_pto::Outputs prolog(
    const ops::npu_lightning_indexer_prolog_pto::Arguments& arguments,
    const ops::npu_lightning_indexer_prolog_pto::CallShape& sizes);

}  // namespace custom_pypto_lightning_indexer_prolog::npu

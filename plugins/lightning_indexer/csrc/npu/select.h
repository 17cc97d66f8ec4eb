#pragma once

#include "problem.h"

namespace custom_pypto_lightning_indexer::npu {

// Fills `positions`, the op's result, by the NPU kernel that the machine has. Lengths and
// block_table stay on the device: their values are not checked, and nothing waits for the device.
// The arguments have passed check_arguments.
void select(const Arguments& arguments, const Tensor& positions);

}  // namespace custom_pypto_lightning_indexer::npu

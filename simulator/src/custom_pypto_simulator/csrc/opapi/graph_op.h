// The graph engine's own operators, which torchair's converters use, computed with ATen.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "custom_pypto_simulator/graph.h"

namespace custom_pypto_simulator {

// Computes an operator that is not a simulated kernel. Returns false when there is none of this
// type. Throws what ATen throws, and when an attribute or input is missing or unknown.
bool run_builtin(const Node& node, const std::vector<at::Tensor>& inputs,
                 std::vector<at::Tensor>& outputs);

}  // namespace custom_pypto_simulator

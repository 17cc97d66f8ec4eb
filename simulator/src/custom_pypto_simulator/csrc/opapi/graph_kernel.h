// Runs simulated aclnn kernels for the graph engine.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "custom_pypto_simulator/graph.h"

namespace custom_pypto_simulator {

// Device memory, owned by the tensor.
at::Tensor empty_on_device(const std::vector<int64_t>& shape, at::ScalarType dtype);

// The tensor, contiguous and in device memory, as kernels need it: itself, or a copy if the
// engine's own operators computed it in host memory.
at::Tensor on_device(const at::Tensor& tensor);

// Runs `op` for `node`, through both phases, with aclnn objects made as eager calls make them.
// `inputs` are in the node's order, undefined where an optional one is absent; `shapes` are those
// of the outputs. An output that is written in place is the input itself.
std::vector<at::Tensor> run_kernel(const Op& op, const Node& node,
                                   const std::vector<at::Tensor>& inputs,
                                   const std::vector<std::vector<int64_t>>& shapes);

}  // namespace custom_pypto_simulator

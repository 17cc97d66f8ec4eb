#pragma once

#include <torch/csrc/stable/tensor.h>

namespace npu {

// out = self + other, all of one shape, dtype and device. Queues the kernel and does not wait for
// it. Throws for dtypes that the NPU kernel does not add.
void add(const torch::stable::Tensor& self, const torch::stable::Tensor& other,
         const torch::stable::Tensor& out);

}  // namespace npu

// The form of the op for training, and its gradient, on a CPU.
#pragma once

#include "ops.h"

namespace custom_pypto_compressor {

// Throw std::runtime_error that names the argument whose value is wrong.
void train_cpu(const ops::npu_compressor_train::Arguments& a,
               const ops::npu_compressor_train::CallShape& s,
               const ops::npu_compressor_train::Outputs& out);
void backward_cpu(const ops::npu_compressor_backward::Arguments& a,
                  const ops::npu_compressor_backward::CallShape& s,
                  const ops::npu_compressor_backward::Outputs& out);

}  // namespace custom_pypto_compressor

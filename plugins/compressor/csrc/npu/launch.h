// The ops on an NPU. They queue their work and do not wait for it; the values of lengths, positions
// and tables are not checked.
#pragma once

#include "ops.h"

namespace custom_pypto_compressor::npu {

// Launches CANN's aclnnCompressor.
void compressor(const ops::npu_compressor::Arguments& a, const ops::npu_compressor::CallShape& s,
                const ops::npu_compressor::Outputs& out);

// Launches it without a state, so that it returns what the gradient needs.
void compressor_train(const ops::npu_compressor_train::Arguments& a,
                      const ops::npu_compressor_train::CallShape& s,
                      const ops::npu_compressor_train::Outputs& out);

// Launches CANN's aclnnCompressorGrad.
void compressor_backward(const ops::npu_compressor_backward::Arguments& a,
                         const ops::npu_compressor_backward::CallShape& s,
                         const ops::npu_compressor_backward::Outputs& out);

}  // namespace custom_pypto_compressor::npu

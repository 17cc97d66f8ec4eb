// The kernels that compressor.cpp registers for each device.
#pragma once

#include "ops.h"

namespace custom_pypto_compressor {

template <class Op>
using Kernel = void(const typename Op::Arguments& a, const typename Op::CallShape& s,
                    const typename Op::Outputs& out);

// On a CPU. They throw std::runtime_error that names the argument whose value is wrong.
Kernel<ops::npu_compressor> compressor_cpu;
Kernel<ops::npu_compressor_train> train_cpu;
Kernel<ops::npu_compressor_backward> backward_cpu;

// On an NPU. They queue their work and do not wait for it; the values of lengths, positions and
// tables are not checked.
Kernel<ops::npu_compressor> compressor_npu;
Kernel<ops::npu_compressor_train> train_npu;
Kernel<ops::npu_compressor_backward> backward_npu;

}  // namespace custom_pypto_compressor

// Weights: the order of their bytes, which is as their shape says or declared to be fractal NZ, and
// the products with them.
#pragma once

#include <custom_pypto_blocks/projection.h>

#include <array>
#include <utility>

#include "common.h"

namespace custom_pypto_sparse_attention {

// Columns of a tile in fractal NZ order.
inline constexpr int64_t kTileColumns = 16;

// Whether 2-D weights are declared to hold fractal NZ bytes: by the last call of Python's
// declare_nz_weights, else by the environment variable at the first call here.
// Throws std::runtime_error when the variable is neither nz nor plain.
bool weights_are_nz();

// Whether the tensor is a matrix that is declared to hold fractal NZ bytes. False for one that
// torch_npu itself keeps in that order.
bool is_declared_nz(const Tensor& weight);

// The weight as the CPU kernels read it: a matrix [depth, columns], or its fractal NZ order
// [columns / 16, depth, 16].
Weight weight_of(const Tensor& weight);

// The kernel of products of this dtype, accumulated in fp32 and rounded to it.
inline const cpu::MatmulKernel& matmul(Element element) {
  return kernels().matmul[static_cast<int>(element)];
}

// Checks that weights declared to be in that order can be: 16 bits, whole tiles, contiguous.
// Throws std::runtime_error that begins with `op` and names the argument.
void check_declared(const char* op,
                    const std::array<std::pair<const char*, const Tensor&>, 3>& weights);

// The warning that plain weights cost time on an NPU; null after the first call of a process.
const char* take_plain_weight_warning();

}  // namespace custom_pypto_sparse_attention

// In which order the bytes of 2-D weights lie: as their shape says, or declared to be fractal NZ.
#pragma once

#include <array>

#include "common.h"

namespace custom_pypto_sparse_attention {

// Columns of a tile in fractal NZ order.
inline constexpr int64_t kTileColumns = 16;

// Whether 2-D weights are declared to hold fractal NZ bytes: as Python's declare_nz_weights said
// last, else as the variable said at the first call.
// Throws std::runtime_error when the variable says neither nz nor plain.
bool weights_are_nz();

// Whether the tensor is a matrix whose bytes are declared to be in fractal NZ order. One that
// torch_npu keeps in that order by itself is not: its declaration is torch_npu's.
bool is_declared_nz(const Tensor& weight);

struct NamedWeight {
  const char* name;
  const Tensor& tensor;
};

// The weights that may be in fractal NZ order.
std::array<NamedWeight, 3> weights_of(const ops::mla::Arguments& arguments);
std::array<NamedWeight, 3> weights_of(const ops::indexer::Arguments& arguments);

// Checks that those which are declared to be in that order can be: 16 bits, whole tiles,
// contiguous. Throws std::runtime_error that begins with `op` and names the argument.
void check_declared(const char* op, const std::array<NamedWeight, 3>& weights);

// Why a plain weight costs time on an NPU, and what to do; null but for the first time in a
// process.
const char* plain_weight_warning();

}  // namespace custom_pypto_sparse_attention

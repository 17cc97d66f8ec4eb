// Attention in fp64, in its plain form: what gradients are checked with.
#pragma once

#include "attention.h"

namespace custom_pypto_sparse_attention {

// Fills `out` and, unless it is null, `log_sum_exp`. Errors are Attention's.
void attend_fp64(const char* op, const AttentionArguments& arguments, const AttentionSizes& sizes,
                 const Tensor& out, float* log_sum_exp);

}  // namespace custom_pypto_sparse_attention

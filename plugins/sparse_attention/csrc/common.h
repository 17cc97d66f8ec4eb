// Declarations that files of all the ops use.
#pragma once

#include <custom_pypto/message.h>
#include <custom_pypto/tensor_ops.h>

#include <cstdint>

#include "cpu/attention_kernels.h"
#include "ops.h"

namespace custom_pypto_sparse_attention {

using namespace custom_pypto;

// The number of tokens in x [*tokens, H].
inline int64_t token_count(const Span& tokens) {
  int64_t count = 1;
  for (const int64_t size : tokens) count *= size;
  return count;
}

}  // namespace custom_pypto_sparse_attention

// Attention of query tokens to selected positions of a cache.
#pragma once

#include "selection.h"

namespace custom_pypto_sparse_attention {

using AttentionArguments = ops::npu_sparse_flash_attention::Arguments;
using AttentionSizes = ops::npu_sparse_flash_attention::CallShape;

// The keys that each query token attends to. Checks lengths.
Selection selection_of(const char* op, const AttentionArguments& arguments,
                       const AttentionSizes& sizes);

// Making one checks all values but the indices and the blocks they need, which are checked as run()
// comes to them.
class Attention {
 public:
  // Throws std::runtime_error that begins with `op` and names the argument.
  Attention(const char* op, const AttentionArguments& arguments, const AttentionSizes& sizes);
  // Fills `out`, of query's sizes, and, unless it is null, `log_sum_exp`.
  void run(const Tensor& out, float* log_sum_exp) const;

 private:
  class Rows;

  const char* op_;
  AttentionSizes s_;
  Element element_;
  Tensor query_;
  Tensor query_rope_;
  PagedCache kv_cache_;
  PagedCache kr_cache_;
  Selection selection_;
  float scale_;
};

// The same in fp64, in its plain form, which gradients are checked with.
void attend_fp64(const char* op, const AttentionArguments& arguments, const AttentionSizes& sizes,
                 const Tensor& out, float* log_sum_exp);

// Fills the gradients; the bits do not depend on the number of threads.
void attention_grad(const ops::npu_sparse_flash_attention_grad::Arguments& arguments,
                    const ops::npu_sparse_flash_attention_grad::CallShape& sizes,
                    const ops::npu_sparse_flash_attention_grad::Outputs& outputs);

}  // namespace custom_pypto_sparse_attention

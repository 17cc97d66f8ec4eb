// Attention of query tokens to selected positions of a cache.
#pragma once

#include <vector>

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
  struct Keys;
  class Job;
  struct Output {
    char* out;
    float* log_sum_exp;  // or null
  };

  void select(int64_t row, Keys& keys) const;
  // The ranges of keys of all rows together; stops counting at `enough`.
  int64_t ranges_of_rows(int64_t enough) const;
  // The heads of a job, when a row's heads are divided into up to `groups` groups of whole panels.
  int64_t heads_of_job(int64_t groups) const;
  // A task for some heads of a row, without its selection.
  AttendTask task_of(int64_t row, const Output& output, int64_t first_head, int64_t heads) const;
  void write_nothing(const AttendTask& task) const;

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

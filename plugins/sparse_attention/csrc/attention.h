// Attention of query tokens to selected positions of a paged cache.
#pragma once

#include <vector>

#include "activations.h"
#include "paging.h"

namespace custom_pypto_sparse_attention {

using AttentionArguments = ops::npu_sparse_flash_attention::Arguments;
using AttentionSizes = ops::npu_sparse_flash_attention::Sizes;

// Making one checks all values but the indices and the blocks they need, which are checked as run()
// comes to them.
class Attention {
 public:
  // Throws std::runtime_error that begins with `op` and names the argument.
  Attention(const char* op, const AttentionArguments& arguments, const AttentionSizes& sizes);
  // Fills `out`, of query's sizes, and, unless it is null, `log_sum_exp`.
  void run(const Tensor& out, float* log_sum_exp) const;

 private:
  // A query token. `visible` positions of its sequence may be attended to.
  struct Row {
    int64_t sequence;  // -1: past the end of its sequence
    int64_t visible;
  };
  struct Selection;
  class Job;
  struct Output {
    char* out;
    float* log_sum_exp;  // or null
  };

  std::vector<Row> rows_of(const std::optional<Tensor>& lengths_query) const;
  void select(int64_t row, Selection& selection) const;
  // Of keys, in all rows together; not counted further once there are enough.
  int64_t ranges_of_rows(int64_t enough) const;
  // Heads of each of up to `groups` groups of whole panels.
  int64_t heads_of_job(int64_t groups) const;
  // Some heads of a row, but for the selection.
  AttendTask task_of(int64_t row, const Output& output, int64_t first_head, int64_t heads) const;
  void write_nothing(const AttendTask& task) const;

  const char* op_;
  AttentionSizes s_;
  Element element_;
  Tensor query_;
  Tensor query_rope_;
  Cache kv_cache_;
  Cache kr_cache_;
  Tensor sparse_indices_;
  custom_pypto::Integers indices_;
  custom_pypto::BlockTable block_table_;
  std::vector<int64_t> lengths_;
  bool causal_;
  float scale_;
  std::vector<Row> rows_;
};

}  // namespace custom_pypto_sparse_attention

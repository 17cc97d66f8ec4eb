// The indexer's prolog: its query and weights, and its key cache.
#pragma once

#include <vector>

#include "activations.h"
#include "paging.h"
#include "projection.h"

namespace custom_pypto_sparse_attention {

struct IndexerArguments {
  const Tensor& x;
  const Tensor& w_idx_qb;
  const Tensor& w_idx_k;
  const Tensor& w_idx_proj;
  const Tensor& in_gamma_k;
  const Tensor& in_beta_k;
  const Tensor& sin;
  const Tensor& cos;
  const Tensor& cache_index;
  const Tensor& index_k_cache;
};

// What the arguments' shapes say.
struct IndexerShapes {
  int64_t heads;
  int64_t size;
  int64_t rope;
  Weight query;
  Weight key;
  Weight weights;
  Cache cache;
};

// Checks dtypes, shapes and devices, on whatever device the arguments are; reads no values.
// query_rank is the size of q_norm. Throws std::runtime_error that begins with `op` and names the
// argument.
IndexerShapes check_shapes(const char* op, const IndexerArguments& arguments, int64_t query_rank);

struct IndexerOutputs {
  Tensor query;
  Tensor weights;
};

// Checked arguments. Making one checks everything and writes nothing; run() writes the cache.
class IndexerProlog {
 public:
  // query_rank is the size of q_norm, which run() is given.
  // Throws std::runtime_error that begins with `op` and names the argument.
  IndexerProlog(const char* op, const IndexerArguments& arguments, int64_t query_rank);
  IndexerOutputs run(const Tensor& q_norm) const;

  const Cache& cache() const { return cache_; }

 private:
  template <class T>
  void rotate_queries(void* query) const;
  template <class T>
  void fill_cache(const float* keys) const;

  Element element_;
  Tensor x_;
  int64_t tokens_;
  int64_t heads_;
  int64_t size_;
  Weight query_;
  Weight key_;
  Weight weights_;
  std::vector<float> gamma_;
  std::vector<float> beta_;
  Angles angles_;
  Cache cache_;
  std::vector<int64_t> slots_;
};

}  // namespace custom_pypto_sparse_attention

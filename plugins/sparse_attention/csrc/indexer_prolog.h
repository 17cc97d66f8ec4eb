// The indexer's prolog: its query and weights, and its key cache.
#pragma once

#include <custom_pypto/rope.h>

#include <vector>

#include "paging.h"
#include "projection.h"

namespace custom_pypto_sparse_attention {

using IndexerOutputs = ops::npu_indexer_prolog::Outputs;

inline constexpr float kLayerNormEpsilon = 1e-6f;

// Making one checks all values and writes nothing; run() writes the cache.
class IndexerProlog {
 public:
  // Throws std::runtime_error that begins with `op` and names the argument. Borrows the arguments.
  IndexerProlog(const char* op, const ops::indexer::Arguments& arguments,
                const ops::indexer::Sizes& sizes);
  IndexerOutputs run(const Tensor& q_norm) const;

 private:
  template <class T>
  void rotate_queries(void* query) const;
  template <class T>
  void fill_cache(const float* keys) const;

  ops::indexer::Arguments a_;
  ops::indexer::Sizes s_;
  Element element_;
  Tensor x_;
  int64_t tokens_;
  std::vector<float> gamma_;
  std::vector<float> beta_;
  custom_pypto::Angles angles_;
  PagedCache cache_;
  std::vector<int64_t> slots_;
};

}  // namespace custom_pypto_sparse_attention

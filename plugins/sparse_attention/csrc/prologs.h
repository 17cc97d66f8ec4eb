// The prologs on the CPU.
#pragma once

#include <custom_pypto_blocks/paged_cache.h>
#include <custom_pypto_blocks/rope.h>

#include <vector>

#include "kept_rows.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention {

using MlaOutputs = ops::npu_mla_prolog::Outputs;

inline constexpr float kRmsEpsilon = static_cast<float>(ops::RMS_EPSILON);

// The MLA prolog: x to the absorbed query, its rotated part, the normed low-rank query, and the
// caches. Making one checks all values, allocates the outputs, and writes nothing; run() writes the
// caches.
class MlaProlog {
 public:
  // Throws std::runtime_error that begins with `op` and names the argument. Borrows the arguments.
  MlaProlog(const char* op, const ops::mla::Arguments& arguments, const ops::mla::CallShape& sizes);
  MlaOutputs run() const;

  const PagedCache& kv_cache() const { return kv_cache_; }
  KeptRows keep_kv() const { return {kv_cache_, slots_, s_.L * bytes_of(element_)}; }
  KeptRows keep_kr() const { return {kr_cache_, slots_, s_.R * bytes_of(element_)}; }

 private:
  template <class T>
  void norm_queries(void* rows) const;
  template <class T>
  void rotate_queries(const void* query, void* out) const;
  template <class T>
  void fill_caches(const void* kv) const;

  ops::mla::Arguments a_;
  ops::mla::CallShape s_;
  Element element_;
  Tensor x_;
  int64_t tokens_;
  std::vector<float> gamma_query_;
  std::vector<float> gamma_key_;
  Angles angles_;
  PagedCache kv_cache_;
  PagedCache kr_cache_;
  std::vector<int64_t> slots_;
  MlaOutputs outputs_;
};

using IndexerOutputs = ops::npu_indexer_prolog::Outputs;

inline constexpr float kLayerNormEpsilon = static_cast<float>(ops::LAYER_NORM_EPSILON);

// The indexer's prolog: its query and weights, and its key cache. Making one checks all values,
// allocates the outputs, and writes nothing; run() writes the cache.
class IndexerProlog {
 public:
  // Throws std::runtime_error that begins with `op` and names the argument. Borrows the arguments.
  IndexerProlog(const char* op, const ops::indexer::Arguments& arguments,
                const ops::indexer::CallShape& sizes);
  IndexerOutputs run(const Tensor& q_norm) const;

  KeptRows keep_keys() const { return {cache_, slots_, s_.D * bytes_of(element_)}; }

 private:
  template <class T>
  void rotate_queries(void* query) const;
  template <class T>
  void fill_cache(const float* keys) const;

  ops::indexer::Arguments a_;
  ops::indexer::CallShape s_;
  Element element_;
  Tensor x_;
  int64_t tokens_;
  std::vector<float> gamma_;
  std::vector<float> beta_;
  Angles angles_;
  PagedCache cache_;
  std::vector<int64_t> slots_;
  // Allocated before the fused op writes a cache: there may be no memory for them.
  IndexerOutputs outputs_;
  Tensor keys_;
};

}  // namespace custom_pypto_sparse_attention

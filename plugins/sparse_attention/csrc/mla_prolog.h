// The MLA prolog: x to the absorbed query, its rotated part, the normed query rank, and the caches.
#pragma once

#include <tuple>
#include <vector>

#include "activations.h"
#include "paging.h"
#include "projection.h"

namespace custom_pypto_sparse_attention {

struct MlaArguments {
  const Tensor& x;
  const Tensor& w_dq;
  const Tensor& w_uq_qr;
  const Tensor& w_uk;
  const Tensor& w_dkv_kr;
  const Tensor& gamma_cq;
  const Tensor& gamma_ckv;
  const Tensor& sin;
  const Tensor& cos;
  const Tensor& cache_index;
  const Tensor& kv_cache;
  const Tensor& kr_cache;
};

// What the arguments' shapes say.
struct MlaShapes {
  int64_t heads;
  int64_t nope;
  int64_t latent;
  int64_t rope;
  Weight down_query;
  Weight up_query;
  Weight down_key;
  Cache kv_cache;
  Cache kr_cache;
};

// Checks dtypes, shapes and devices, on whatever device the arguments are; reads no values.
// Throws std::runtime_error that begins with `op` and names the argument.
MlaShapes check_shapes(const char* op, const MlaArguments& arguments);

struct MlaOutputs {
  Tensor query;
  Tensor query_rope;
  Tensor q_norm;
};

// Checked arguments. Making one checks everything and writes nothing; run() writes the caches.
class MlaProlog {
 public:
  // Throws std::runtime_error that begins with `op` and names the argument.
  MlaProlog(const char* op, const MlaArguments& arguments);
  MlaOutputs run() const;

  int64_t query_rank() const { return down_query_.columns; }
  const Cache& kv_cache() const { return kv_cache_; }

 private:
  template <class T>
  void norm_queries(void* rows) const;
  template <class T>
  void rotate_queries(const void* query, void* out) const;
  template <class T>
  void fill_caches(const void* kv) const;

  Element element_;
  Tensor x_;
  Tensor w_uk_;
  int64_t tokens_;
  int64_t heads_;
  int64_t nope_;
  int64_t latent_;
  Weight down_query_;
  Weight up_query_;
  Weight down_key_;
  std::vector<float> gamma_query_;
  std::vector<float> gamma_key_;
  Angles angles_;
  Cache kv_cache_;
  Cache kr_cache_;
  std::vector<int64_t> slots_;
};

}  // namespace custom_pypto_sparse_attention

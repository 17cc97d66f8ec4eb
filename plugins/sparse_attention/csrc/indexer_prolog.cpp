// The indexer's prolog on the CPU.
#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/norms.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/read_floats.h>

#include <algorithm>
#include <cstring>

#include "prologs.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention {

IndexerProlog::IndexerProlog(const char* op, const ops::indexer::Arguments& a,
                             const ops::indexer::Sizes& s)
    : a_(a),
      s_(s),
      element_(element_of(a.x.scalar_type())),
      x_(to_contiguous(a.x)),
      tokens_(token_count(s.tokens)),
      gamma_(read_floats(a.in_gamma_k)),
      beta_(read_floats(a.in_beta_k)),
      angles_(a.sin, a.cos, s.R),
      cache_(cache_of(a.index_k_cache, CacheUse::written)),
      slots_(read_slots(op, "cache_index", a.cache_index, cache_)) {
  check_declared(op, weights_of(a));
}

IndexerOutputs IndexerProlog::run(const Tensor& q_norm) const {
  const Tensor normed = to_contiguous(q_norm);
  IndexerOutputs outputs = ops::npu_indexer_prolog::allocate(a_, s_);
  const Tensor keys = empty({tokens_, s_.D}, ScalarType::Float, x_);
  const ConstRows x{x_.const_data_ptr(), tokens_, s_.H};
  const Rows query{outputs.query_index.mutable_data_ptr(), tokens_, s_.N * s_.D};

  project(matmul(element_), {normed.const_data_ptr(), tokens_, s_.Q}, weight_of(a_.w_idx_qb),
          query);
  project(matmul(element_), x, weight_of(a_.w_idx_k), {keys.mutable_data_ptr(), tokens_, s_.D},
          true);
  project(matmul(element_), x, weight_of(a_.w_idx_proj),
          {outputs.weights.mutable_data_ptr(), tokens_, s_.N});
  visit_element(element_, [&](auto number) {
    rotate_queries<decltype(number)>(query.data);
    fill_cache<decltype(number)>(static_cast<const float*>(keys.const_data_ptr()));
  });
  return outputs;
}

template <class T>
void IndexerProlog::rotate_queries(void* query) const {
  parallel_for(0, tokens_, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> before(static_cast<std::size_t>(s_.R));
    for (int64_t token = begin; token < end; ++token) {
      for (int64_t head = token * s_.N; head < (token + 1) * s_.N; ++head) {
        T* row = static_cast<T*>(query) + head * s_.D;
        std::copy_n(row, s_.R, before.data());
        angles_.rotate(token, before.data(), row);
      }
    }
  });
}

template <class T>
void IndexerProlog::fill_cache(const float* keys) const {
  std::vector<T> normed(static_cast<std::size_t>(s_.D));
  std::vector<T> row(static_cast<std::size_t>(s_.D));
  // In the order of the tokens: of equal slots the last one wins.
  for (int64_t token = 0; token < tokens_; ++token) {
    layer_norm(keys + token * s_.D, s_.D, gamma_.data(), beta_.data(), kLayerNormEpsilon,
               normed.data());
    angles_.rotate(token, normed.data(), row.data());
    std::copy(normed.begin() + s_.R, normed.end(), row.begin() + s_.R);
    std::memcpy(cache_.row(slots_[static_cast<std::size_t>(token)]), row.data(),
                row.size() * sizeof(T));
  }
}

}  // namespace custom_pypto_sparse_attention

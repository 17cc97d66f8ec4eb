#include "indexer_prolog.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cstring>

#include "rows.h"

namespace custom_pypto_sparse_attention {

IndexerShapes check_shapes(const char* op, const IndexerArguments& a, int64_t query_rank) {
  IndexerShapes shapes;
  const Arg x(op, "x", a.x);
  x.rank({2, 3});
  check_activations(x);
  const int64_t hidden = a.x.size(-1);
  shapes.rope = check_angles(Arg(op, "sin", a.sin), Arg(op, "cos", a.cos), x);

  const char* hidden_size = "the hidden size of x";
  const Arg w_idx_k(op, "w_idx_k", a.w_idx_k);
  shapes.key = check_weight(w_idx_k, x, hidden, hidden_size);
  shapes.size = shapes.key.columns;
  check(shapes.rope <= shapes.size, op, "sin", "must not be wider than the head size ", shapes.size,
        " (the columns of w_idx_k), got ", shapes.rope, " in its last dimension");
  const Arg w_idx_proj(op, "w_idx_proj", a.w_idx_proj);
  shapes.weights = check_weight(w_idx_proj, x, hidden, hidden_size);
  shapes.heads = shapes.weights.columns;
  check(shapes.heads >= 1, op, "w_idx_proj",
        "must have at least one column (a head of the indexer), got ", a.w_idx_proj.sizes());
  const Arg w_idx_qb(op, "w_idx_qb", a.w_idx_qb);
  shapes.query = check_weight(w_idx_qb, x, query_rank, "the size of the normed query");
  check_columns(w_idx_qb, shapes.query, shapes.heads * shapes.size,
                "the columns of w_idx_proj times those of w_idx_k");

  const Arg gamma(op, "in_gamma_k", a.in_gamma_k);
  const Arg beta(op, "in_beta_k", a.in_beta_k);
  for (const Arg* parameter : {&gamma, &beta}) {
    parameter->rank(1).size(0, shapes.size, "the columns of w_idx_k");
    check_parameter(*parameter, x);
  }
  shapes.cache = check_cache(Arg(op, "index_k_cache", a.index_k_cache), x, shapes.size,
                             "the columns of w_idx_k", CacheUse::written);
  check_slots(Arg(op, "cache_index", a.cache_index), x);
  return shapes;
}

IndexerProlog::IndexerProlog(const char* op, const IndexerArguments& a, int64_t query_rank) {
  const IndexerShapes shapes = check_shapes(op, a, query_rank);
  element_ = element_of(a.x.scalar_type());
  x_ = dense(a.x);
  tokens_ = token_count(a.x);
  heads_ = shapes.heads;
  size_ = shapes.size;
  query_ = shapes.query;
  key_ = shapes.key;
  weights_ = shapes.weights;
  gamma_ = read_floats(a.in_gamma_k);
  beta_ = read_floats(a.in_beta_k);
  angles_ = {shapes.rope, read_floats(a.sin), read_floats(a.cos)};
  cache_ = shapes.cache;
  slots_ = read_slots(Arg(op, "cache_index", a.cache_index), Arg(op, "x", a.x), cache_);
}

IndexerOutputs IndexerProlog::run(const Tensor& q_norm) const {
  IndexerOutputs outputs{empty_like_tokens(x_, {heads_, size_}), empty_like_tokens(x_, {heads_})};
  const Tensor keys = custom_pypto::empty({tokens_, size_}, ScalarType::Float, x_);
  const ConstRows x{x_.const_data_ptr(), tokens_, x_.size(-1)};
  const ConstRows normed{q_norm.const_data_ptr(), tokens_, query_.depth};
  const Rows query{outputs.query.mutable_data_ptr(), tokens_, query_.columns};

  project(element_, normed, query_, query);
  project(element_, x, key_, {keys.mutable_data_ptr(), tokens_, size_}, true);
  project(element_, x, weights_, {outputs.weights.mutable_data_ptr(), tokens_, heads_});
  visit_element(element_, [&](auto number) {
    rotate_queries<decltype(number)>(query.data);
    fill_cache<decltype(number)>(static_cast<const float*>(keys.const_data_ptr()));
  });
  return outputs;
}

template <class T>
void IndexerProlog::rotate_queries(void* query) const {
  const int64_t turned = angles_.size;
  custom_pypto::parallel_for(0, tokens_, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> before(static_cast<std::size_t>(turned));
    for (int64_t token = begin; token < end; ++token) {
      for (int64_t head = token * heads_; head < (token + 1) * heads_; ++head) {
        T* row = static_cast<T*>(query) + head * size_;
        std::copy_n(row, turned, before.data());
        rope(before.data(), turned, &angles_.sin[static_cast<std::size_t>(token * turned)],
             &angles_.cos[static_cast<std::size_t>(token * turned)], row);
      }
    }
  });
}

template <class T>
void IndexerProlog::fill_cache(const float* keys) const {
  const int64_t turned = angles_.size;
  std::vector<T> normed(static_cast<std::size_t>(size_));
  std::vector<T> row(static_cast<std::size_t>(size_));
  // In the order of the tokens: of equal slots the last one wins.
  for (int64_t token = 0; token < tokens_; ++token) {
    layer_norm(keys + token * size_, size_, gamma_.data(), beta_.data(), normed.data());
    rope(normed.data(), turned, &angles_.sin[static_cast<std::size_t>(token * turned)],
         &angles_.cos[static_cast<std::size_t>(token * turned)], row.data());
    std::copy(normed.begin() + turned, normed.end(), row.begin() + turned);
    std::memcpy(cache_.row(slots_[static_cast<std::size_t>(token)]), row.data(),
                row.size() * sizeof(T));
  }
}

}  // namespace custom_pypto_sparse_attention

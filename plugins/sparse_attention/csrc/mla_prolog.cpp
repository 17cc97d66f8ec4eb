#include "mla_prolog.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>

#include <cstring>

#include "rows.h"

namespace custom_pypto_sparse_attention {

MlaShapes check_shapes(const char* op, const MlaArguments& a) {
  MlaShapes shapes;
  const Arg x(op, "x", a.x);
  x.rank({2, 3});
  check_activations(x);
  const int64_t hidden = a.x.size(-1);
  shapes.rope = check_angles(Arg(op, "sin", a.sin), Arg(op, "cos", a.cos), x);

  const Arg w_uk(op, "w_uk", a.w_uk);
  w_uk.rank(3).same_dtype(x).same_device(x);
  shapes.heads = a.w_uk.size(0);
  shapes.nope = a.w_uk.size(1);
  shapes.latent = a.w_uk.size(2);

  const char* hidden_size = "the hidden size of x";
  shapes.down_query = check_weight(Arg(op, "w_dq", a.w_dq), x, hidden, hidden_size);
  const Arg gamma_query(op, "gamma_cq", a.gamma_cq);
  gamma_query.rank(1).size(0, shapes.down_query.columns, "the columns of w_dq");
  check_parameter(gamma_query, x);

  const Arg w_uq_qr(op, "w_uq_qr", a.w_uq_qr);
  shapes.up_query = check_weight(w_uq_qr, x, shapes.down_query.columns, "the columns of w_dq");
  check_columns(w_uq_qr, shapes.up_query, shapes.heads * (shapes.nope + shapes.rope),
                "heads of w_uk times its nope size and the size of sin");

  const Arg w_dkv_kr(op, "w_dkv_kr", a.w_dkv_kr);
  shapes.down_key = check_weight(w_dkv_kr, x, hidden, hidden_size);
  check_columns(w_dkv_kr, shapes.down_key, shapes.latent + shapes.rope,
                "the latent size of w_uk and the size of sin");
  const Arg gamma_key(op, "gamma_ckv", a.gamma_ckv);
  gamma_key.rank(1).size(0, shapes.latent, "the latent size of w_uk");
  check_parameter(gamma_key, x);

  const Arg kv_cache(op, "kv_cache", a.kv_cache);
  const Arg kr_cache(op, "kr_cache", a.kr_cache);
  shapes.kv_cache =
      check_cache(kv_cache, x, shapes.latent, "the latent size of w_uk", CacheUse::written);
  shapes.kr_cache = check_cache(kr_cache, x, shapes.rope, "the size of sin", CacheUse::written);
  check_same_blocks(kr_cache, kv_cache);
  check_slots(Arg(op, "cache_index", a.cache_index), x);
  return shapes;
}

MlaProlog::MlaProlog(const char* op, const MlaArguments& a) : w_uk_(a.w_uk) {
  const MlaShapes shapes = check_shapes(op, a);
  const Arg x(op, "x", a.x);
  element_ = element_of(a.x.scalar_type());
  x_ = dense(a.x);
  tokens_ = token_count(a.x);
  heads_ = shapes.heads;
  nope_ = shapes.nope;
  latent_ = shapes.latent;
  down_query_ = shapes.down_query;
  up_query_ = shapes.up_query;
  down_key_ = shapes.down_key;
  gamma_query_ = read_floats(a.gamma_cq);
  gamma_key_ = read_floats(a.gamma_ckv);
  angles_ = {shapes.rope, read_floats(a.sin), read_floats(a.cos)};
  kv_cache_ = shapes.kv_cache;
  kr_cache_ = shapes.kr_cache;
  slots_ = read_slots(Arg(op, "cache_index", a.cache_index), x, kv_cache_);
}

MlaOutputs MlaProlog::run() const {
  MlaOutputs outputs{empty_like_tokens(x_, {heads_, latent_}),
                     empty_like_tokens(x_, {heads_, angles_.size}),
                     empty_like_tokens(x_, {query_rank()})};
  const ScalarType dtype = x_.scalar_type();
  const Tensor q = custom_pypto::empty({tokens_, up_query_.columns}, dtype, x_);
  const Tensor kv = custom_pypto::empty({tokens_, down_key_.columns}, dtype, x_);
  const ConstRows x{x_.const_data_ptr(), tokens_, x_.size(-1)};
  const Rows q_norm{outputs.q_norm.mutable_data_ptr(), tokens_, query_rank()};
  const Rows q_rows{q.mutable_data_ptr(), tokens_, up_query_.columns};
  const Rows kv_rows{kv.mutable_data_ptr(), tokens_, down_key_.columns};
  const Rows query{outputs.query.mutable_data_ptr(), tokens_, heads_ * latent_};

  project(element_, x, down_query_, q_norm);
  visit_element(element_, [&](auto number) { norm_queries<decltype(number)>(q_norm.data); });
  project(element_, as_const(q_norm), up_query_, q_rows);
  project_batch(element_, as_const(q_rows), nope_ + angles_.size, w_uk_, query, latent_);
  project(element_, x, down_key_, kv_rows);
  visit_element(element_, [&](auto number) {
    rotate_queries<decltype(number)>(q_rows.data, outputs.query_rope.mutable_data_ptr());
    fill_caches<decltype(number)>(kv_rows.data);
  });
  return outputs;
}

template <class T>
void MlaProlog::norm_queries(void* rows) const {
  custom_pypto::parallel_for(0, tokens_, 4, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      T* row = static_cast<T*>(rows) + token * query_rank();
      rms_norm(row, query_rank(), gamma_query_.data(), row);
    }
  });
}

template <class T>
void MlaProlog::rotate_queries(const void* query, void* out) const {
  const int64_t size = angles_.size;
  custom_pypto::parallel_for(0, tokens_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      for (int64_t head = token * heads_; head < (token + 1) * heads_; ++head) {
        rope(static_cast<const T*>(query) + head * (nope_ + size) + nope_, size,
             &angles_.sin[static_cast<std::size_t>(token * size)],
             &angles_.cos[static_cast<std::size_t>(token * size)],
             static_cast<T*>(out) + head * size);
      }
    }
  });
}

template <class T>
void MlaProlog::fill_caches(const void* kv) const {
  const int64_t size = angles_.size;
  const int64_t columns = down_key_.columns;
  std::vector<T> rows(static_cast<std::size_t>(tokens_ * columns));
  custom_pypto::parallel_for(0, tokens_, 4, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const T* from = static_cast<const T*>(kv) + token * columns;
      T* to = rows.data() + token * columns;
      rms_norm(from, latent_, gamma_key_.data(), to);
      rope(from + latent_, size, &angles_.sin[static_cast<std::size_t>(token * size)],
           &angles_.cos[static_cast<std::size_t>(token * size)], to + latent_);
    }
  });
  // In the order of the tokens: of equal slots the last one wins.
  const T* row = rows.data();
  for (const int64_t slot : slots_) {
    std::memcpy(kv_cache_.row(slot), row, static_cast<std::size_t>(latent_) * sizeof(T));
    std::memcpy(kr_cache_.row(slot), row + latent_, static_cast<std::size_t>(size) * sizeof(T));
    row += columns;
  }
}

}  // namespace custom_pypto_sparse_attention

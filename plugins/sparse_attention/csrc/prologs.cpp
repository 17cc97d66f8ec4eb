// The prologs on the CPU.
#include "prologs.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/norms.h>

#include <algorithm>
#include <cstring>

#include "weight_order.h"

namespace custom_pypto_sparse_attention {
namespace {

// Calls f with a number of the C++ type of `element`, which is fp32, fp16 or bf16.
template <class F>
void visit_element(Element element, const F& f) {
  if (element == Element::fp32) return f(float{});
  if (element == Element::fp16) return f(Half{});
  return f(BFloat16{});
}

}  // namespace

MlaProlog::MlaProlog(const char* op, const ops::mla::Arguments& a, const ops::mla::CallShape& s)
    : a_(a),
      s_(s),
      element_(Element(float_index(a.x.scalar_type()))),
      x_(to_contiguous(a.x)),
      tokens_(token_count(s.tokens)),
      gamma_query_(read_floats(a.gamma_cq)),
      gamma_key_(read_floats(a.gamma_ckv)),
      angles_(a.sin, a.cos, s.R),
      kv_cache_(cache_of(op, "kv_cache", a.kv_cache, CacheUse::written)),
      kr_cache_(cache_of(op, "kr_cache", a.kr_cache, CacheUse::written)),
      slots_(read_slots(op, "cache_index", a.cache_index, kv_cache_)),
      outputs_(ops::npu_mla_prolog::allocate(a, s, op)) {
  check_declared(op, ops::mla::weight_tensors(a));
}

MlaOutputs MlaProlog::run() const {
  const ScalarType dtype = x_.scalar_type();
  const int64_t query_columns = s_.N1 * (s_.P + s_.R);
  const int64_t key_columns = s_.L + s_.R;
  const Tensor q = empty({tokens_, query_columns}, dtype, x_);
  const Tensor kv = empty({tokens_, key_columns}, dtype, x_);
  const ConstRows x{x_.const_data_ptr(), tokens_, s_.H};
  const Rows q_norm{outputs_.q_norm.mutable_data_ptr(), tokens_, s_.Q};
  const Rows q_rows{q.mutable_data_ptr(), tokens_, query_columns};
  const Rows kv_rows{kv.mutable_data_ptr(), tokens_, key_columns};
  const Rows query{outputs_.query.mutable_data_ptr(), tokens_, s_.N1 * s_.L};

  project(matmul(element_), x, weight_of(a_.w_dq), q_norm);
  visit_element(element_, [&](auto number) { norm_queries<decltype(number)>(q_norm.data); });
  project(matmul(element_), as_const(q_norm), weight_of(a_.w_uq_qr), q_rows);
  project_batch(matmul(element_), as_const(q_rows), s_.P + s_.R, a_.w_uk, query, s_.L);
  project(matmul(element_), x, weight_of(a_.w_dkv_kr), kv_rows);
  visit_element(element_, [&](auto number) {
    rotate_queries<decltype(number)>(q_rows.data, outputs_.query_rope.mutable_data_ptr());
    fill_caches<decltype(number)>(kv_rows.data);
  });
  return outputs_;
}

template <class T>
void MlaProlog::norm_queries(void* rows) const {
  parallel_for(0, tokens_, 4, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      T* row = static_cast<T*>(rows) + token * s_.Q;
      rms_norm(row, s_.Q, gamma_query_.data(), kRmsEpsilon, row);
    }
  });
}

template <class T>
void MlaProlog::rotate_queries(const void* query, void* out) const {
  parallel_for(0, tokens_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      for (int64_t head = token * s_.N1; head < (token + 1) * s_.N1; ++head) {
        angles_.rotate(token, static_cast<const T*>(query) + head * (s_.P + s_.R) + s_.P,
                       static_cast<T*>(out) + head * s_.R);
      }
    }
  });
}

template <class T>
void MlaProlog::fill_caches(const void* kv) const {
  const int64_t columns = s_.L + s_.R;
  std::vector<T> rows(static_cast<std::size_t>(tokens_ * columns));
  parallel_for(0, tokens_, 4, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const T* from = static_cast<const T*>(kv) + token * columns;
      T* to = rows.data() + token * columns;
      rms_norm(from, s_.L, gamma_key_.data(), kRmsEpsilon, to);
      angles_.rotate(token, from + s_.L, to + s_.L);
    }
  });
  // In the order of the tokens: of equal slots the last one wins.
  const T* row = rows.data();
  for (const int64_t slot : slots_) {
    // Not memcpy: a cache without columns has no memory.
    std::copy_n(row, s_.L, reinterpret_cast<T*>(kv_cache_.row(slot)));
    std::copy_n(row + s_.L, s_.R, reinterpret_cast<T*>(kr_cache_.row(slot)));
    row += columns;
  }
}

IndexerProlog::IndexerProlog(const char* op, const ops::indexer::Arguments& a,
                             const ops::indexer::CallShape& s)
    : a_(a),
      s_(s),
      element_(Element(float_index(a.x.scalar_type()))),
      x_(to_contiguous(a.x)),
      tokens_(token_count(s.tokens)),
      gamma_(read_floats(a.in_gamma_k)),
      beta_(read_floats(a.in_beta_k)),
      angles_(a.sin, a.cos, s.R),
      cache_(cache_of(op, "index_k_cache", a.index_k_cache, CacheUse::written)),
      slots_(read_slots(op, "cache_index", a.cache_index, cache_)),
      outputs_(ops::npu_indexer_prolog::allocate(a, s, op)),
      keys_(empty({tokens_, s.D}, ScalarType::Float, x_)) {
  check_declared(op, ops::indexer::weight_tensors(a));
}

IndexerOutputs IndexerProlog::run(const Tensor& q_norm) const {
  const Tensor normed = to_contiguous(q_norm);
  const ConstRows x{x_.const_data_ptr(), tokens_, s_.H};
  const Rows query{outputs_.query_index.mutable_data_ptr(), tokens_, s_.N * s_.D};

  project(matmul(element_), {normed.const_data_ptr(), tokens_, s_.Q}, weight_of(a_.w_idx_qb),
          query);
  project(matmul(element_), x, weight_of(a_.w_idx_k), {keys_.mutable_data_ptr(), tokens_, s_.D},
          true);
  project(matmul(element_), x, weight_of(a_.w_idx_proj),
          {outputs_.weights.mutable_data_ptr(), tokens_, s_.N});
  visit_element(element_, [&](auto number) {
    rotate_queries<decltype(number)>(query.data);
    fill_cache<decltype(number)>(static_cast<const float*>(keys_.const_data_ptr()));
  });
  return outputs_;
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

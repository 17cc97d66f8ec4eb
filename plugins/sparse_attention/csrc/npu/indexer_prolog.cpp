// npu_indexer_prolog on NPUs, composed of stock torch ops.
#include <custom_pypto/npu/prolog_steps.h>
#include <custom_pypto/npu/tensor_ops.h>

#include "npu/kernels.h"
#include "npu/weights.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {

using namespace custom_pypto::npu;

IndexerOutputs indexer_prolog(const char* op, const ops::indexer::Arguments& a,
                              const ops::indexer::Sizes& s, const Tensor& q_norm) {
  check_declared(op, weights_of(a));
  const int64_t tokens = token_count(s.tokens);
  if (tokens == 0) return ops::npu_indexer_prolog::allocate(a, s);
  const NoGradGuard no_grad;
  const ScalarType dtype = a.x.scalar_type();
  const Tensor x = as_rows(a.x);
  const Tensor sin = as_rows(a.sin);
  const Tensor cos = as_rows(a.cos);

  const Tensor products = matrix_product(as_rows(q_norm), plain_weight(a.w_idx_qb));
  const Tensor query = rope_first(reshape(products, {tokens, s.N, s.D}), sin, cos);
  // The key's products are normed before they are rounded.
  const Tensor wide = matrix_product(to_dtype(x, ScalarType::Float),
                                     to_dtype(plain_weight(a.w_idx_k), ScalarType::Float));
  const Tensor key =
      to_dtype(layer_norm(wide, a.in_gamma_k, a.in_beta_k, kLayerNormEpsilon), dtype);
  const Tensor rotated = rope_first(reshape(key, {tokens, 1, s.D}), sin, cos);
  scatter(a.index_k_cache, a.cache_index, as_rows(rotated));
  const Tensor weights = matrix_product(x, plain_weight(a.w_idx_proj));

  return {unflatten_tokens(a.x, query), unflatten_tokens(a.x, weights)};
}

}  // namespace custom_pypto_sparse_attention::npu

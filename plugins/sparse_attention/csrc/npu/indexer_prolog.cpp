#include "npu/kernels.h"
#include "npu/steps.h"
#include "npu/tensors.h"
#include "rows.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

// rope on the first dims of x [tokens, heads, size], as many as sin has.
Tensor rope_first(const Tensor& x, const Tensor& sin, const Tensor& cos) {
  const int64_t turned = sin.size(-1);
  const Tensor front = rope(columns(x, 0, turned), sin, cos);
  const int64_t rest = x.size(2) - turned;
  return rest == 0 ? front : concatenate({front, columns(x, turned, rest)});
}

}  // namespace

IndexerOutputs indexer_prolog(const char* op, const IndexerArguments& a, const Tensor& q_norm) {
  const IndexerShapes shapes = check_shapes(op, a, q_norm.size(-1));
  const ScalarType dtype = a.x.scalar_type();
  if (token_count(a.x) == 0) {
    return {empty_like_tokens(a.x, {shapes.heads, shapes.size}),
            empty_like_tokens(a.x, {shapes.heads})};
  }
  const NoGradients scope;
  const Tensor x = as_rows(a.x);
  const Tensor sin = as_rows(a.sin);
  const Tensor cos = as_rows(a.cos);

  const Tensor products = matrix_product(as_rows(q_norm), plain_weight(a.w_idx_qb));
  const Tensor query =
      rope_first(reshaped(products, {x.size(0), shapes.heads, shapes.size}), sin, cos);
  // The key's products are normed before they are rounded.
  const Tensor wide = matrix_product(converted(x, ScalarType::Float),
                                     converted(plain_weight(a.w_idx_k), ScalarType::Float));
  const Tensor key =
      converted(layer_norm(wide, a.in_gamma_k, a.in_beta_k, kLayerNormEpsilon), dtype);
  const Tensor turned = rope_first(reshaped(key, {x.size(0), 1, shapes.size}), sin, cos);
  scatter(a.index_k_cache, a.cache_index, as_rows(turned));
  const Tensor weights = matrix_product(x, plain_weight(a.w_idx_proj));

  return {like_tokens(a.x, query), like_tokens(a.x, weights)};
}

}  // namespace custom_pypto_sparse_attention::npu

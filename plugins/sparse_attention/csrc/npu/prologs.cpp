// The prologs on NPUs: CANN's kernel of npu_mla_prolog where it fits, else stock torch ops.
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>

#include "npu/cann_version.h"
#include "npu/kernels.h"
#include "npu/steps.h"
#include "npu/weights.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using namespace custom_pypto::npu;

const KernelChoice stock("npu_mla_prolog", {"aclnnMlaPrologV3WeightNz"});

// Whether the function has the parameters that run_stock passes. Before CANN 8.5.0.alpha003 it had
// others under the same name, which changed too: op-plugin has passed it a query_norm_flag, and
// before that also k_nope_clip_alpha as a number.
bool has_these_parameters() {
  static const bool is_known = [] {
    const std::optional<CannVersion> since = CannVersion::parse("8.5.0.alpha003");
    const std::optional<CannVersion>& version = cann_version();
    return version.has_value() && !(*version < *since);
  }();
  return is_known;
}

bool fits_stock(const ops::mla::Arguments& a, const ops::mla::CallShape& s) {
  if (!ops::npu_mla_prolog::aclnnMlaPrologV3WeightNz_supports(a, s) || !has_these_parameters()) {
    return false;
  }
  for (const auto& [name, weight] : ops::mla::weight_tensors(a)) {
    if (weight.dim() != 2 || !is_fractal_nz(weight)) return false;
  }
  return a.kv_cache.is_contiguous() && a.kr_cache.is_contiguous();
}

void run_stock(const Kernel& kernel, const ops::mla::Arguments& a, const MlaOutputs& out) {
  constexpr std::nullopt_t none = std::nullopt;
  const double epsilon = kRmsEpsilon;
  const int64_t plain = 0;
  const int64_t tile_size = 128;
  CUSTOM_PYPTO_LAUNCH(
      kernel, aclnnMlaPrologV3WeightNz, to_contiguous(a.x), a.w_dq, a.w_uq_qr,
      to_contiguous(a.w_uk), a.w_dkv_kr, to_contiguous(a.gamma_cq), to_contiguous(a.gamma_ckv),
      to_contiguous(a.sin), to_contiguous(a.cos), a.kv_cache, a.kr_cache,
      to_contiguous(to_dtype(a.cache_index, ScalarType::Long)), none, none, none, none, none, none,
      none, none, none, epsilon, epsilon, "PA_BSND", plain, plain, plain, plain, plain, tile_size,
      1.0, 1.0, out.query, out.query_rope, none, out.q_norm, none);
}

// The steps of README.md, in the same order and with the same roundings.
MlaOutputs compose(const ops::mla::Arguments& a, const ops::mla::CallShape& s) {
  const NoGradGuard no_grad;
  const ScalarType dtype = a.x.scalar_type();
  const Tensor x = as_rows(a.x);
  const Tensor sin = as_rows(a.sin);
  const Tensor cos = as_rows(a.cos);

  const Tensor down = matrix_product(x, plain_weight(a.w_dq));
  const Tensor q_norm = to_dtype(rms_norm(down, a.gamma_cq, kRmsEpsilon), dtype);
  const Tensor q =
      reshape(matrix_product(q_norm, plain_weight(a.w_uq_qr)), {x.size(0), s.N1, s.P + s.R});
  const Tensor nope = permute(columns(q, 0, s.P), {1, 0, 2});
  const Tensor query = permute(batched_product(nope, a.w_uk), {1, 0, 2});
  const Tensor query_rope = rope(columns(q, s.P, s.R), sin, cos);

  const Tensor kv = matrix_product(x, plain_weight(a.w_dkv_kr));
  const Tensor latent = rms_norm(columns(kv, 0, s.L), a.gamma_ckv, kRmsEpsilon);
  const Tensor tail = columns(kv, s.L, s.R);
  const Tensor key_rope = rope(reshape(tail, {x.size(0), 1, s.R}), sin, cos);
  scatter(a.kv_cache, a.cache_index, to_dtype(latent, dtype));
  scatter(a.kr_cache, a.cache_index, as_rows(key_rope));
  return {unflatten_tokens(a.x, query), unflatten_tokens(a.x, query_rope),
          unflatten_tokens(a.x, q_norm)};
}

}  // namespace

MlaOutputs mla_prolog(const char* op, const ops::mla::Arguments& a, const ops::mla::CallShape& s) {
  check_declared(op, ops::mla::weight_tensors(a));
  const bool is_empty = token_count(s.tokens) == 0;
  const Kernel* kernel = !is_empty && fits_stock(a, s) ? stock.try_get() : nullptr;
  if (kernel == nullptr && !is_empty) return compose(a, s);
  MlaOutputs out = ops::npu_mla_prolog::allocate(a, s, op);
  if (kernel != nullptr) run_stock(*kernel, a, out);
  return out;
}

IndexerOutputs indexer_prolog(const char* op, const ops::indexer::Arguments& a,
                              const ops::indexer::CallShape& s, const Tensor& q_norm) {
  check_declared(op, ops::indexer::weight_tensors(a));
  const int64_t tokens = token_count(s.tokens);
  if (tokens == 0) return ops::npu_indexer_prolog::allocate(a, s, op);
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

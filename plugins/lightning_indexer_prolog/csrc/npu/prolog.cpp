// The op on an NPU: one fused kernel, or the steps of README.md.
#include "npu/prolog.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace custom_pypto_lightning_indexer_prolog::npu {
namespace {

using namespace custom_pypto;
using namespace custom_pypto::npu;
using Op = ops::npu_lightning_indexer_prolog_pto;

const KernelChoice fused(Op::name, {"aclnnLightningIndexerPrologPto"});
// Products of int8 matrices, scaled and rounded to bf16; the second is in fractal NZ order.
const KernelChoice plain_product(Op::name, {"aclnnQuantMatmulV4"});
const KernelChoice nz_product(Op::name, {"aclnnQuantMatmulWeightNz"});

bool is_nz(const Tensor& weight) { return is_fractal_nz(weight) && weight.is_contiguous(); }

// The kernel takes contiguous caches only, and weights in fractal NZ order only.
bool fits_fused(const Op::Arguments& a, const Op::CallShape& s) {
  return Op::aclnnLightningIndexerPrologPto_supports(a, s) && a.idx_k_cache.is_contiguous() &&
         a.idx_k_scale_cache.is_contiguous() && is_nz(a.wq_b) && is_nz(a.wk) &&
         is_nz(a.weights_proj);
}

Op::Outputs launch_fused(const Kernel& kernel, const Op::Arguments& a, const Op::CallShape& s) {
  const Op::Outputs out = Op::allocate(a, s);
  CUSTOM_PYPTO_LAUNCH(
      kernel, aclnnLightningIndexerPrologPto,
      std::vector<Tensor>{
          to_contiguous(a.token_x), to_contiguous(a.q_norm), to_contiguous(a.q_norm_scale), a.wq_b,
          to_contiguous(a.wq_b_scale), a.wk, a.weights_proj, to_contiguous(a.ln_gamma_k),
          to_contiguous(a.ln_beta_k), to_contiguous(a.cos_idx_rope), to_contiguous(a.sin_idx_rope),
          to_contiguous(a.hadamard_q), to_contiguous(a.hadamard_k), a.idx_k_cache,
          a.idx_k_scale_cache, to_contiguous(to_dtype(a.idx_k_cache_index, ScalarType::Long))},
      a.layernorm_epsilon_k, a.layout_query.value_or("TND"), a.layout_key.value_or("PA_BSND"),
      out.query, out.query_scale, out.weights);
  return out;
}

// bf16(q_norm @ wq_b * scales) [T, N * D].
Tensor query_product(const Op::Arguments& a, const Op::CallShape& s) {
  const Tensor out = empty({s.T, s.N * s.D}, a.token_x);
  const Tensor x = to_contiguous(a.q_norm);
  const Tensor token_scales = to_contiguous(reshape(a.q_norm_scale, {s.T}));
  const Tensor column_scales = to_contiguous(reshape(a.wq_b_scale, {s.N * s.D}));
  const std::optional<Tensor> none;
  if (is_nz(a.wq_b)) {
    CUSTOM_PYPTO_LAUNCH(nz_product.get(), aclnnQuantMatmulWeightNz, x, a.wq_b, token_scales,
                        column_scales, none, none, none, none, none, false, false, 0, out);
  } else {
    CUSTOM_PYPTO_LAUNCH(plain_product.get(), aclnnQuantMatmulV4, x, to_contiguous(a.wq_b),
                        column_scales, none, token_scales, none, false, false, out);
  }
  return out;
}

struct Quantised {
  Tensor integers;  // int8 [rows, size]
  Tensor scales;    // fp16 [rows, 1]
};

Tensor number(double value, const Tensor& like) {
  return torch::stable::full({1}, value, ScalarType::Float, std::nullopt, like.device());
}

Quantised quantise(const Tensor& rows) {
  const Tensor wide = to_dtype(rows, ScalarType::Float);
  const Tensor largest = call_op<Tensor>("aten::amax", "", call_op<Tensor>("aten::abs", "", wide),
                                         std::vector<int64_t>{-1}, true);
  const Tensor factor = call_op<Tensor>("aten::div", "Tensor", number(127, rows), largest);
  // In a row of zeros the factor is infinite and the products NaN; the scale 1 / factor is 0.
  const Tensor is_zero = call_op<Tensor>("aten::eq", "Tensor", factor,
                                         number(std::numeric_limits<double>::infinity(), rows));
  const Tensor scaled =
      call_op<Tensor>("aten::where", "self", is_zero, number(0, rows), multiply(wide, factor));
  return {to_dtype(call_op<Tensor>("aten::round", "", scaled), ScalarType::Char),
          to_dtype(call_op<Tensor>("aten::reciprocal", "", factor), ScalarType::Half)};
}

// A bf16 weight in fp32; torch_npu may keep it in fractal NZ order. The parameters of the public
// npu_format_cast depend on the version of torch_npu.
Tensor wide_weight(const Tensor& weight) {
  const Tensor plain =
      is_plain(weight) ? weight : call_op<Tensor>("npu::_npu_format_cast", "", weight, int64_t{2});
  return to_dtype(plain, ScalarType::Float);
}

Op::Outputs compose(const Op::Arguments& a, const Op::CallShape& s) {
  const Tensor products = reshape(query_product(a, s), {s.T, s.N, s.D});
  const Tensor q = rope_first(products, a.sin_idx_rope, a.cos_idx_rope);
  const Quantised query = quantise(matrix_product(reshape(q, {s.T * s.N, s.D}), a.hadamard_q));

  // The key's products are normed before they are rounded.
  const Tensor wide = matrix_product(to_dtype(a.token_x, ScalarType::Float), wide_weight(a.wk));
  const Tensor normed = to_dtype(layer_norm(wide, a.ln_gamma_k, a.ln_beta_k, a.layernorm_epsilon_k),
                                 a.token_x.scalar_type());
  const Tensor k =
      as_rows(rope_first(reshape(normed, {s.T, 1, s.D}), a.sin_idx_rope, a.cos_idx_rope));
  const Tensor mixed =
      matrix_product(to_dtype(k, ScalarType::Float), to_dtype(a.hadamard_k, ScalarType::Float));
  const Quantised key = quantise(to_dtype(mixed, a.token_x.scalar_type()));

  const Tensor products_of_heads = matrix_product(a.token_x, a.weights_proj);
  const Tensor weights =
      multiply(multiply(to_dtype(products_of_heads, ScalarType::Float),
                        number(1 / std::sqrt(static_cast<double>(s.N)), a.token_x)),
               number(1 / std::sqrt(static_cast<double>(s.D)), a.token_x));

  scatter(a.idx_k_cache, a.idx_k_cache_index, key.integers);
  scatter(call_op<Tensor>("aten::unsqueeze", "", a.idx_k_scale_cache, int64_t{-1}),
          a.idx_k_cache_index, key.scales);
  return {to_contiguous(reshape(query.integers, {s.T, s.N, s.D})),
          to_contiguous(reshape(query.scales, {s.T, s.N, 1})), to_dtype(weights, ScalarType::Half)};
}

}  // namespace

Op::Outputs prolog(const Op::Arguments& a, const Op::CallShape& s) {
  if (s.T == 0) return Op::allocate(a, s);
  const Kernel* kernel = fits_fused(a, s) ? fused.try_get() : nullptr;
  if (kernel != nullptr) return launch_fused(*kernel, a, s);
  const NoGradGuard no_grad;
  return compose(a, s);
}

}  // namespace custom_pypto_lightning_indexer_prolog::npu

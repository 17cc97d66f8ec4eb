// CANN's own kernels, simulated: they compute with the CPU kernels. The ops' IR has these names.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/fractal_nz.h>
#include <custom_pypto_simulator/need.h>

#include <initializer_list>
#include <string>
#include <tuple>

constexpr bool kHasPagedLse = false;
#include "sparse_flash_attention.h"

namespace {

using custom_pypto_simulator::call_into;
using custom_pypto_simulator::from_fractal_nz;

// CANN and graphs hold it in fp32.
bool is_rms_epsilon(double value) { return static_cast<float>(value) == 1e-5F; }

// The tensors of the MLA prolog, with weights in plain order.
struct MlaTensors {
  at::Tensor x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, kv_cache, kr_cache,
      cache_index;
};

// aclnnMlaPrologV3WeightNz.md, "约束说明", of CANN's ops-transformer, in the words of CANN 8.5.0
// and without quantisation.
void check_mla(const MlaTensors& t) {
  for (const at::Tensor* weight : {&t.w_dq, &t.w_uq_qr, &t.w_dkv_kr}) {
    need(weight->scalar_type() == at::kBFloat16, "the weights must be BFLOAT16");
  }
  for (const at::Tensor* each :
       {&t.x, &t.w_uk, &t.gamma_cq, &t.gamma_ckv, &t.sin, &t.cos, &t.kv_cache, &t.kr_cache}) {
    need(each->scalar_type() == at::kBFloat16, "the tensors must be BFLOAT16");
    need(each->is_contiguous(), "the tensors must be contiguous");
  }
  need(t.cache_index.scalar_type() == at::kLong && t.cache_index.is_contiguous(),
       "cache_index must be contiguous and INT64");
  const int64_t hidden = t.w_dq.size(0);
  need(hidden == 7168 || hidden == 7680, "He must be 7168 or 7680");
  need(t.w_dq.size(1) == 1536, "Hcq must be 1536");
  need(is_head_count(t.w_uk.size(0)), "N must be 1, 2, 4, 8, 16, 32, 64 or 128");
  need(t.w_uk.size(1) == 128, "D must be 128");
  need(t.w_uk.size(2) == 512 && t.kv_cache.size(-1) == 512, "Hckv must be 512");
  need(t.sin.size(-1) == 64 && t.kr_cache.size(-1) == 64, "Dr must be 64");
  need(t.kv_cache.size(2) == 1 && t.kr_cache.size(2) == 1, "Nkv must be 1");
  need(t.kv_cache.size(1) % 16 == 0 && t.kv_cache.size(1) <= 1024,
       "BlockSize must be a multiple of 16 and at most 1024");
}

// Both ways to call it without quantisation.
void check_mla_settings(std::initializer_list<Optional> absent, double epsilon_cq,
                        double epsilon_ckv, const std::string& cache_mode,
                        std::initializer_list<int64_t> modes, int64_t tile_size, double qc_qr_scale,
                        double kc_scale) {
  for (const Optional& each : absent) need(!each, "no quantisation is simulated");
  for (const int64_t mode : modes) need(mode == 0, "no quantisation is simulated");
  need(is_rms_epsilon(epsilon_cq) && is_rms_epsilon(epsilon_ckv), "the wrong epsilon");
  need(cache_mode == "PA_BSND", "the wrong cache mode");
  need(tile_size == 128 && qc_qr_scale == 1 && kc_scale == 1, "the wrong settings");
}

// The weight in fractal NZ order, which the op takes whatever is declared of matrices.
at::Tensor nz(const at::Tensor& weight) {
  return weight.reshape({weight.size(0), weight.size(1) / 16, 16}).permute({1, 0, 2}).contiguous();
}

void run_mla(const MlaTensors& t, at::Tensor& query, at::Tensor& query_rope, at::Tensor& norm) {
  check_mla(t);
  call_into(std::tie(query, query_rope, norm), "custom_pypto::npu_mla_prolog", t.x, nz(t.w_dq),
            nz(t.w_uq_qr), t.w_uk, nz(t.w_dkv_kr), t.gamma_cq, t.gamma_ckv, t.sin, t.cos,
            t.cache_index, t.kv_cache, t.kr_cache);
}

}  // namespace

// Eager calls launch this kernel, with weights in FRACTAL_NZ and the parameters that it has since
// CANN 8.5.0.alpha003.
CUSTOM_PYPTO_SIM_ACLNN(aclnnMlaPrologV3WeightNz, at::Tensor token_x, const aclTensor& weight_dq,
                       const aclTensor& weight_uq_qr, at::Tensor weight_uk,
                       const aclTensor& weight_dkv_kr, at::Tensor gamma_cq, at::Tensor gamma_ckv,
                       at::Tensor rope_sin, at::Tensor rope_cos, at::Tensor& kv_cacheRef,
                       at::Tensor& kr_cacheRef, at::Tensor cache_index, Optional dequant_scale_x,
                       Optional dequant_scale_w_dq, Optional dequant_scale_w_uq_qr,
                       Optional dequant_scale_w_dkv_kr, Optional quant_scale_ckv,
                       Optional quant_scale_ckr, Optional smooth_scales_cq, Optional actual_seq_len,
                       Optional k_nope_clip_alpha, double epsilon_cq, double epsilon_ckv,
                       std::string cache_mode, int64_t weight_quant_mode,
                       int64_t kv_cache_quant_mode, int64_t query_quant_mode,
                       int64_t ckvkr_repo_mode, int64_t quant_scale_repo_mode, int64_t tile_size,
                       double qc_qr_scale, double kc_scale, at::Tensor& query,
                       at::Tensor& query_rope, Optional dequant_scale_q_nope,
                       at::Tensor& query_norm, Optional dequant_scale_q_norm) {
  check_mla_settings(
      {dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr,
       quant_scale_ckv, quant_scale_ckr, smooth_scales_cq, actual_seq_len, k_nope_clip_alpha,
       dequant_scale_q_nope, dequant_scale_q_norm},
      epsilon_cq, epsilon_ckv, cache_mode,
      {weight_quant_mode, kv_cache_quant_mode, query_quant_mode, ckvkr_repo_mode,
       quant_scale_repo_mode},
      tile_size, qc_qr_scale, kc_scale);
  run_mla({token_x, from_fractal_nz(weight_dq), from_fractal_nz(weight_uq_qr), weight_uk,
           from_fractal_nz(weight_dkv_kr), gamma_cq, gamma_ckv, rope_sin, rope_cos, kv_cacheRef,
           kr_cacheRef, cache_index},
          query, query_rope, query_norm);
}

// Graphs name this kernel: the graph engine converts the format of the weights.
CUSTOM_PYPTO_SIM_ACLNN(
    aclnnMlaPrologV3, at::Tensor token_x, at::Tensor weight_dq, at::Tensor weight_uq_qr,
    at::Tensor weight_uk, at::Tensor weight_dkv_kr, at::Tensor rmsnorm_gamma_cq,
    at::Tensor rmsnorm_gamma_ckv, at::Tensor rope_sin, at::Tensor rope_cos, at::Tensor& kv_cacheRef,
    at::Tensor& kr_cacheRef, at::Tensor cache_index, Optional dequant_scale_x,
    Optional dequant_scale_w_dq, Optional dequant_scale_w_uq_qr, Optional dequant_scale_w_dkv_kr,
    Optional quant_scale_ckv, Optional quant_scale_ckr, Optional smooth_scales_cq,
    Optional actual_seq_len, Optional k_nope_clip_alpha, double rmsnorm_epsilon_cq,
    double rmsnorm_epsilon_ckv, std::string cache_mode, bool query_norm_flag,
    int64_t weight_quant_mode, int64_t kv_cache_quant_mode, int64_t query_quant_mode,
    int64_t ckvkr_repo_mode, int64_t quant_scale_repo_mode, int64_t tile_size, double qc_qr_scale,
    double kc_scale, at::Tensor& query, at::Tensor& query_rope, at::Tensor& dequant_scale_q_nope,
    at::Tensor& query_norm, at::Tensor& dequant_scale_q_norm) {
  check_mla_settings(
      {dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr,
       quant_scale_ckv, quant_scale_ckr, smooth_scales_cq, actual_seq_len, k_nope_clip_alpha},
      rmsnorm_epsilon_cq, rmsnorm_epsilon_ckv, cache_mode,
      {weight_quant_mode, kv_cache_quant_mode, query_quant_mode, ckvkr_repo_mode,
       quant_scale_repo_mode},
      tile_size, qc_qr_scale, kc_scale);
  need(query_norm_flag, "the wrong settings");
  need(dequant_scale_q_nope.numel() <= 1 && dequant_scale_q_norm.numel() <= 1, "no scales");
  run_mla({token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq,
           rmsnorm_gamma_ckv, rope_sin, rope_cos, kv_cacheRef, kr_cacheRef, cache_index},
          query, query_rope, query_norm);
}

// aclnnSparseFlashAttentionGrad.md, the table of parameters, of CANN's ops-transformer.
CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseFlashAttentionGrad, at::Tensor query, at::Tensor key,
                       at::Tensor value, at::Tensor sparse_indices, at::Tensor d_out,
                       at::Tensor out, at::Tensor softmax_max, at::Tensor softmax_sum,
                       Optional actual_seq_lengths_query, Optional actual_seq_lengths_kv,
                       Optional query_rope, Optional key_rope, double scale_value,
                       int64_t sparse_block_size, std::string layout, int64_t sparse_mode,
                       int64_t pre_tokens, int64_t next_tokens, bool deterministic,
                       at::Tensor& d_query, at::Tensor& d_key, at::Tensor& d_value,
                       at::Tensor& d_query_rope, at::Tensor& d_key_rope) {
  // They select nothing here.
  std::ignore = std::tie(pre_tokens, next_tokens, deterministic);
  need(query_rope && key_rope, "absorbed attention needs ropes");
  check_absorbed({&query, &key, &value, &d_out, &out, &*query_rope, &*key_rope, &d_query, &d_key,
                  &d_value, &d_query_rope, &d_key_rope},
                 {sparse_indices, actual_seq_lengths_query, actual_seq_lengths_kv}, query, key,
                 sparse_indices, *query_rope, *key_rope, layout, sparse_mode, sparse_block_size);
  for (const at::Tensor* each : {&softmax_max, &softmax_sum}) {
    need(each->scalar_type() == at::kFloat && each->numel() == query.numel() / 512,
         "softmax_max and softmax_sum must be FLOAT with a number for each head");
  }
  need(sparse_indices.size(-1) == 2048, "K must be 2048");
  need(query.dim() == key.dim(), "the layouts must be equal");
  need((layout == "TND") == (actual_seq_lengths_query && actual_seq_lengths_kv),
       "lengths go with TND");
  need(is_valid_first(sparse_indices), "sparse_indices must have their valid values first");
  constexpr int64_t kAbsorbed = 2;
  const Optional none;
  call_into(std::tie(d_query, d_key, d_value, d_query_rope, d_key_rope),
            "custom_pypto::npu_sparse_flash_attention_grad", query, key, value, sparse_indices,
            d_out, out, softmax_max, softmax_sum, scale_value, sparse_block_size,
            query_rope.value(), key_rope.value(), actual_seq_lengths_query, actual_seq_lengths_kv,
            layout, sparse_mode, kAllTokens, kAllTokens, kAbsorbed, none, none, false);
}

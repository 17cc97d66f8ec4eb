// CANN's own kernels, simulated: they compute with the CPU kernels. Names are those of the ops' IR.
#include <custom_pypto_simulator/aclnn.h>

#include <limits>
#include <tuple>

namespace {

using custom_pypto_simulator::call;
using Optional = std::optional<at::Tensor>;

void need(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// CANN computes with it in fp32, as which graphs hold it.
bool is_rms_epsilon(double value) { return static_cast<float>(value) == 1e-5F; }

struct MlaTensors {
  at::Tensor x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, kv_cache, kr_cache,
      cache_index;
};

void run_mla(const MlaTensors& t, at::Tensor& query, at::Tensor& query_rope, at::Tensor& norm) {
  need(t.cache_index.scalar_type() == at::kLong, "cache_index must be int64");
  const auto results = call<std::tuple<at::Tensor, at::Tensor, at::Tensor>>(
      "custom_pypto::npu_mla_prolog", t.x, t.w_dq, t.w_uq_qr, t.w_uk, t.w_dkv_kr, t.gamma_cq,
      t.gamma_ckv, t.sin, t.cos, t.cache_index, t.kv_cache, t.kr_cache);
  query.copy_(std::get<0>(results));
  query_rope.copy_(std::get<1>(results));
  norm.copy_(std::get<2>(results));
}

// A matrix [K, N] from its private storage format: [N / 16, K / 16, 16, 16].
at::Tensor plain(const aclTensor& weight) {
  need(weight.format == ACL_FORMAT_FRACTAL_NZ && weight.storage_shape.size() == 4,
       "the weights must be in the format FRACTAL_NZ");
  const auto dtype = custom_pypto_simulator::scalar_type(weight.dtype);
  const auto& sizes = weight.storage_shape;
  return at::from_blob(weight.data, at::IntArrayRef(sizes.data(), sizes.size()),
                       at::TensorOptions().dtype(dtype))
      .permute({1, 2, 0, 3})
      .reshape({sizes[1] * sizes[2], sizes[0] * sizes[3]})
      .slice(0, 0, weight.shape[0])
      .slice(1, 0, weight.shape[1])
      .contiguous();
}

}  // namespace

// What eager calls launch: its weights are in FRACTAL_NZ.
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
  for (const auto& absent :
       {dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr,
        quant_scale_ckv, quant_scale_ckr, smooth_scales_cq, actual_seq_len, k_nope_clip_alpha,
        dequant_scale_q_nope, dequant_scale_q_norm}) {
    need(!absent, "no quantisation is simulated");
  }
  need(is_rms_epsilon(epsilon_cq) && is_rms_epsilon(epsilon_ckv), "the wrong epsilon");
  need(cache_mode == "PA_BSND", "the wrong cache mode");
  need(weight_quant_mode == 0 && kv_cache_quant_mode == 0 && query_quant_mode == 0 &&
           ckvkr_repo_mode == 0 && quant_scale_repo_mode == 0,
       "no quantisation is simulated");
  need(tile_size == 128 && qc_qr_scale == 1 && kc_scale == 1, "the wrong settings");
  run_mla({token_x, plain(weight_dq), plain(weight_uq_qr), weight_uk, plain(weight_dkv_kr),
           gamma_cq, gamma_ckv, rope_sin, rope_cos, kv_cacheRef, kr_cacheRef, cache_index},
          query, query_rope, query_norm);
}

// What graphs name: the graph engine converts the format of the weights by itself.
CUSTOM_PYPTO_SIM_ACLNN(
    aclnnMlaPrologV3, at::Tensor token_x, at::Tensor weight_dq, at::Tensor weight_uq_qr,
    at::Tensor weight_uk, at::Tensor weight_dkv_kr, at::Tensor rmsnorm_gamma_cq,
    at::Tensor rmsnorm_gamma_ckv, at::Tensor rope_sin, at::Tensor rope_cos, at::Tensor& kv_cacheRef,
    at::Tensor& kr_cacheRef, at::Tensor cache_index, std::optional<at::Tensor> dequant_scale_x,
    std::optional<at::Tensor> dequant_scale_w_dq, std::optional<at::Tensor> dequant_scale_w_uq_qr,
    std::optional<at::Tensor> dequant_scale_w_dkv_kr, std::optional<at::Tensor> quant_scale_ckv,
    std::optional<at::Tensor> quant_scale_ckr, std::optional<at::Tensor> smooth_scales_cq,
    std::optional<at::Tensor> actual_seq_len, std::optional<at::Tensor> k_nope_clip_alpha,
    double rmsnorm_epsilon_cq, double rmsnorm_epsilon_ckv, std::string cache_mode,
    bool query_norm_flag, int64_t weight_quant_mode, int64_t kv_cache_quant_mode,
    int64_t query_quant_mode, int64_t ckvkr_repo_mode, int64_t quant_scale_repo_mode,
    int64_t tile_size, double qc_qr_scale, double kc_scale, at::Tensor& query,
    at::Tensor& query_rope, at::Tensor& dequant_scale_q_nope, at::Tensor& query_norm,
    at::Tensor& dequant_scale_q_norm) {
  for (const auto& absent :
       {dequant_scale_x, dequant_scale_w_dq, dequant_scale_w_uq_qr, dequant_scale_w_dkv_kr,
        quant_scale_ckv, quant_scale_ckr, smooth_scales_cq, actual_seq_len, k_nope_clip_alpha}) {
    need(!absent, "no quantisation is simulated");
  }
  need(query_norm_flag && cache_mode == "PA_BSND", "the wrong settings");
  need(weight_quant_mode == 0 && kv_cache_quant_mode == 0 && query_quant_mode == 0 &&
           ckvkr_repo_mode == 0 && quant_scale_repo_mode == 0,
       "no quantisation is simulated");
  need(tile_size == 128 && qc_qr_scale == 1 && kc_scale == 1, "the wrong settings");
  need(is_rms_epsilon(rmsnorm_epsilon_cq) && is_rms_epsilon(rmsnorm_epsilon_ckv),
       "the wrong epsilon");
  need(dequant_scale_q_nope.numel() <= 1 && dequant_scale_q_norm.numel() <= 1, "no scales");
  run_mla({token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq,
           rmsnorm_gamma_ckv, rope_sin, rope_cos, kv_cacheRef, kr_cacheRef, cache_index},
          query, query_rope, query_norm);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSparseFlashAttention, at::Tensor query, at::Tensor key,
                       at::Tensor value, at::Tensor sparse_indices,
                       std::optional<at::Tensor> block_table,
                       std::optional<at::Tensor> actual_seq_lengths_query,
                       std::optional<at::Tensor> actual_seq_lengths_kv,
                       std::optional<at::Tensor> query_rope, std::optional<at::Tensor> key_rope,
                       double scale_value, int64_t sparse_block_size, std::string layout_query,
                       std::string layout_kv, int64_t sparse_mode, int64_t pre_tokens,
                       int64_t next_tokens, int64_t attention_mode, bool return_softmax_lse,
                       at::Tensor& attention_out, at::Tensor& softmax_max,
                       at::Tensor& softmax_sum) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  need(key.data_ptr() == value.data_ptr(), "key and value must be the one cache");
  need(pre_tokens == kAll && next_tokens == kAll && sparse_block_size == 1 && attention_mode == 2,
       "only absorbed attention over whole token windows is simulated");
  need(layout_kv == "PA_BSND" && layout_query == (query.dim() == 4 ? "BSND" : "TND"),
       "the wrong layout");
  for (const auto& integers :
       {Optional(sparse_indices), block_table, actual_seq_lengths_query, actual_seq_lengths_kv}) {
    need(!integers || integers->scalar_type() == at::kInt, "indices and lengths must be int32");
  }
  const auto results = call<std::tuple<at::Tensor, at::Tensor>>(
      "custom_pypto::npu_sparse_flash_attention", query, query_rope.value(), key, key_rope.value(),
      sparse_indices, block_table.value(), actual_seq_lengths_kv.value(), scale_value,
      actual_seq_lengths_query, sparse_mode, return_softmax_lse);
  attention_out.copy_(std::get<0>(results));
  if (return_softmax_lse) {
    softmax_max.copy_(std::get<1>(results).view(softmax_max.sizes()));
    softmax_sum.fill_(1);
  }
}

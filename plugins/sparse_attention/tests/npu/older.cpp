// Kernels of CANN before 8.5.0.alpha003, simulated: the parameters are others under the same names.
#include <custom_pypto_simulator/aclnn.h>

#include <stdexcept>

using custom_pypto_simulator::Optional;

// The names are the IR of the graph engine's operator.
#pragma GCC diagnostic ignored "-Wunused-parameter"

// Nobody may launch it without knowing its parameters: a flag is where later versions have
// weight_quant_mode.
CUSTOM_PYPTO_SIM_ACLNN(aclnnMlaPrologV3WeightNz, at::Tensor) {
  throw std::logic_error("launched by someone who cannot know its parameters");
}

// The graph engine's operator, with k_nope_clip_alpha as an attribute. No graph may name it.
CUSTOM_PYPTO_SIM_ACLNN(aclnnMlaPrologV3, at::Tensor token_x, at::Tensor weight_dq,
                       at::Tensor weight_uq_qr, at::Tensor weight_uk, at::Tensor weight_dkv_kr,
                       at::Tensor rmsnorm_gamma_cq, at::Tensor rmsnorm_gamma_ckv,
                       at::Tensor rope_sin, at::Tensor rope_cos, at::Tensor& kv_cacheRef,
                       at::Tensor& kr_cacheRef, Optional cache_index, Optional dequant_scale_x,
                       Optional dequant_scale_w_dq, Optional dequant_scale_w_uq_qr,
                       Optional dequant_scale_w_dkv_kr, Optional quant_scale_ckv,
                       Optional quant_scale_ckr, Optional smooth_scales_cq, Optional actual_seq_len,
                       double rmsnorm_epsilon_cq, double rmsnorm_epsilon_ckv,
                       std::string cache_mode, bool query_norm_flag, int64_t weight_quant_mode,
                       int64_t kv_cache_quant_mode, int64_t query_quant_mode,
                       int64_t ckvkr_repo_mode, int64_t quant_scale_repo_mode, int64_t tile_size,
                       double k_nope_clip_alpha, double qc_qr_scale, double kc_scale,
                       at::Tensor& query, at::Tensor& query_rope, at::Tensor& dequant_scale_q_nope,
                       at::Tensor& query_norm, at::Tensor& dequant_scale_q_norm) {
  throw std::logic_error("named by a graph that cannot know its inputs");
}

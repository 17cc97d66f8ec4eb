// CANN's own kernels, simulated: they compute with the CPU kernels, within the limits that CANN
// documents for Ascend 950 (mhc/*/docs of its ops-transformer). Names are those of the ops' IR.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <initializer_list>
#include <optional>
#include <tuple>

namespace {

using at::Tensor;
using custom_pypto_simulator::call;
using custom_pypto_simulator::call_into;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

void check_streams(const Tensor& x) {
  const int64_t n = x.size(-2);
  need(x.dim() == 3 || x.dim() == 4, "x must be [T, n, D] or [B, S, n, D]");
  need(x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf,
       "x must be BFLOAT16 or FLOAT16");
  need(n == 4 || n == 6 || n == 8, "n must be 4, 6 or 8");
}

void check_floats(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* each : tensors) {
    need(each->scalar_type() == at::kFloat && each->numel() > 0,
         "coefficients must be FLOAT32 and not empty");
  }
}

void check_pre(const Tensor& x, const Tensor& phi, const Tensor& alpha, const Optional& gamma) {
  check_streams(x);
  check_floats({&phi, &alpha});
  if (gamma) check_floats({&*gamma});
  need(x.numel() > 0, "x must not be empty");
  need(x.size(-1) <= 16384 && x.size(-1) % 16 == 0, "D must be a multiple of 16, at most 16384");
}

void run_pre(const Tensor& x, const Tensor& phi, const Tensor& alpha, const Tensor& bias,
             const Optional& gamma, double norm_eps, double hc_eps, int64_t mode, Tensor& h_in,
             Tensor& h_post, Optional h_res, Optional inv_rms, Optional h_mix, Optional h_pre) {
  check_pre(x, phi, alpha, gamma);
  check_floats({&bias, &h_post});
  need(mode == 0 || mode == 1, "opImplMode must be 0 or 1");
  need(h_res.has_value(), "hRes must be given: of 1 number where alpha has 2");
  need(inv_rms.has_value() == h_mix.has_value() && h_mix.has_value() == h_pre.has_value(),
       "invRms, hMix and hPre go together");
  const auto made = call<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>>(
      "custom_pypto::npu_mhc_pre", x, phi, alpha, bias, gamma, norm_eps, hc_eps,
      int64_t{h_mix.has_value()}, mode);
  h_in.copy_(std::get<0>(made));
  h_post.copy_(std::get<1>(made));
  if (alpha.numel() == 3) h_res->copy_(std::get<2>(made));
  if (inv_rms) inv_rms->copy_(std::get<3>(made));
  if (h_mix) h_mix->copy_(std::get<4>(made));
  if (h_pre) h_pre->copy_(std::get<5>(made));
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnMhcPreV2, at::Tensor x, at::Tensor phi, at::Tensor alpha,
                       at::Tensor bias, Optional gamma, double norm_eps, double hc_eps,
                       int64_t op_impl_mode, at::Tensor& hin, at::Tensor& h_post, Optional h_res,
                       Optional inv_rms, Optional h_mix, Optional h_pre) {
  run_pre(x, phi, alpha, bias, gamma, norm_eps, hc_eps, op_impl_mode, hin, h_post, h_res, inv_rms,
          h_mix, h_pre);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnMhcPreBackward, at::Tensor x, at::Tensor phi, at::Tensor alpha,
                       at::Tensor grad_h_in, at::Tensor grad_h_post, at::Tensor grad_h_res,
                       at::Tensor inv_rms, at::Tensor h_mix, at::Tensor h_pre, at::Tensor h_post,
                       Optional gamma, Optional grad_x_post, float hc_eps, at::Tensor& grad_x,
                       at::Tensor& grad_phi, at::Tensor& grad_alpha, at::Tensor& grad_bias,
                       at::Tensor& grad_gamma) {
  check_pre(x, phi, alpha, gamma);
  check_floats({&grad_h_post, &grad_h_res, &inv_rms, &h_mix, &h_pre, &h_post});
  need(alpha.numel() == 3, "alpha must have 3 numbers");
  // 1e-6f is 9.99999997e-07: a double in its place would be another number.
  need(hc_eps >= 0 && hc_eps < 1, "hcEps must be a small float");
  const auto made = call<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>>(
      "custom_pypto::npu_mhc_pre_backward", x, phi, alpha, grad_h_in, grad_h_post, grad_h_res,
      inv_rms, h_mix, h_pre, h_post, gamma, static_cast<double>(hc_eps), grad_x_post);
  grad_x.copy_(std::get<0>(made));
  grad_phi.copy_(std::get<1>(made));
  grad_alpha.copy_(std::get<2>(made));
  grad_bias.copy_(std::get<3>(made));
  if (gamma) {
    grad_gamma.copy_(std::get<4>(made));
  } else {
    grad_gamma.zero_();
  }
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnMhcSinkhorn, at::Tensor x, float eps, int64_t num_iters, at::Tensor& y,
                       Optional norm_out, Optional sum_out) {
  check_floats({&x});
  need(num_iters >= 1 && num_iters <= 100, "numIters must be in [1, 100]");
  need(norm_out.has_value() == sum_out.has_value(), "normOut and sumOut go together");
  const auto made = call<std::tuple<Tensor, Tensor, Tensor>>("custom_pypto::npu_mhc_sinkhorn", x,
                                                             static_cast<double>(eps), num_iters,
                                                             int64_t{norm_out.has_value()});
  y.copy_(std::get<0>(made));
  if (norm_out) norm_out->copy_(std::get<1>(made));
  if (sum_out) sum_out->copy_(std::get<2>(made));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnMhcSinkhornBackward, at::Tensor grad_y, at::Tensor norm, at::Tensor sum,
                       at::Tensor& grad_x) {
  check_floats({&grad_y, &norm, &sum});
  grad_x.copy_(call<Tensor>("custom_pypto::npu_mhc_sinkhorn_backward", grad_y, norm, sum));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnMhcPost, at::Tensor x, Optional h_res, at::Tensor h_out,
                       at::Tensor h_post, at::Tensor& y) {
  check_streams(x);
  check_floats({&h_post});
  y.copy_(call<Tensor>("custom_pypto::npu_mhc_post", x, h_res, h_out, h_post));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnMhcPostBackward, at::Tensor grad_y, at::Tensor x, Optional h_res,
                       at::Tensor h_out, at::Tensor h_post, at::Tensor& grad_x,
                       at::Tensor& grad_h_res, at::Tensor& grad_h_out, at::Tensor& grad_h_post) {
  check_streams(x);
  check_floats({&h_post});
  need(x.numel() > 0, "x must not be empty");
  call_into(std::tie(grad_x, grad_h_res, grad_h_out, grad_h_post),
            "custom_pypto::npu_mhc_post_backward", grad_y, x, h_res, h_out, h_post);
}

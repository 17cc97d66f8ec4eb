// Launches of CANN's kernels for hyper-connections. They take no empty tensors.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include <optional>

#include "registered.h"

namespace custom_pypto_mhc {
namespace {

using namespace custom_pypto;
using custom_pypto::npu::KernelChoice;
using Pre = ops::npu_mhc_pre;
using PreGrad = ops::npu_mhc_pre_backward;
using Post = ops::npu_mhc_post;
using PostGrad = ops::npu_mhc_post_backward;
using Sinkhorn = ops::npu_mhc_sinkhorn;
using SinkhornGrad = ops::npu_mhc_sinkhorn_backward;

// The first one rounds to HF32 too.
const KernelChoice pre_kernels(Pre::name, {"aclnnMhcPreV2", "aclnnMhcPre"});
const KernelChoice pre_grad_kernels(PreGrad::name, {"aclnnMhcPreBackward"});
const KernelChoice sinkhorn_kernels(Sinkhorn::name, {"aclnnMhcSinkhorn"});
const KernelChoice sinkhorn_grad_kernels(SinkhornGrad::name, {"aclnnMhcSinkhornBackward"});
const KernelChoice post_kernels(Post::name, {"aclnnMhcPost"});
const KernelChoice post_grad_kernels(PostGrad::name, {"aclnnMhcPostBackward"});

// Whether there is something to launch. Throws if it is outside the limits.
template <class Op>
bool fits(const Tensor& x, const typename Op::Arguments& a, const typename Op::CallShape& s) {
  if (x.numel() > 0) Op::check_limits(a, s);
  return x.numel() > 0;
}

using custom_pypto::to_contiguous;
std::optional<Tensor> to_contiguous(const std::optional<Tensor>& tensor) {
  return tensor.has_value() ? std::optional<Tensor>(to_contiguous(*tensor)) : std::nullopt;
}

// A result that this call has, or null.
std::optional<Tensor> result(bool is_given, const Tensor& tensor) {
  return is_given ? std::optional<Tensor>(tensor) : std::nullopt;
}

}  // namespace

void pre_npu(const Pre::Arguments& a, const Pre::CallShape& s, const Pre::Outputs& out) {
  if (!fits<Pre>(a.x, a, s)) return;
  const auto& kernel = pre_kernels.get();
  const bool is_kept = a.out_flag == 1;
  // As torch_npu does: the kernel does not write it.
  const Tensor h_res = s.A == 3 ? out.h_res : empty({1}, ScalarType::Float, a.x);
  const auto inv_rms = result(is_kept, out.inv_rms);
  const auto h_mix = result(is_kept, out.h_mix);
  const auto h_pre = result(is_kept, out.h_pre);
  if (kernel.is("aclnnMhcPreV2")) {
    CUSTOM_PYPTO_LAUNCH(kernel, aclnnMhcPreV2, to_contiguous(a.x), to_contiguous(a.phi),
                        to_contiguous(a.alpha), to_contiguous(a.bias), to_contiguous(a.gamma),
                        a.norm_eps, a.hc_eps, a.inner_precise, out.h_in, out.h_post, h_res, inv_rms,
                        h_mix, h_pre);
    return;
  }
  check(a.inner_precise == 0, Pre::name, "inner_precise",
        "must be 0 on this NPU: its CANN has no aclnnMhcPreV2; install a newer one");
  CUSTOM_PYPTO_LAUNCH(kernel, aclnnMhcPre, to_contiguous(a.x), to_contiguous(a.phi),
                      to_contiguous(a.alpha), to_contiguous(a.bias), to_contiguous(a.gamma),
                      a.norm_eps, a.hc_eps, out.h_in, out.h_post, h_res, inv_rms, h_mix, h_pre);
}

void pre_grad_npu(const PreGrad::Arguments& a, const PreGrad::CallShape& s,
                  const PreGrad::Outputs& out) {
  const auto zero = [](Tensor tensor) { torch::stable::zero_(tensor); };
  // The kernel does not write the gradient of a gamma that is not given.
  if (!a.gamma.has_value() || a.x.numel() == 0) zero(out.grad_gamma);
  if (a.x.numel() == 0) {
    for (const Tensor& each : {out.grad_phi, out.grad_alpha, out.grad_bias}) zero(each);
    return;
  }
  PreGrad::check_limits(a, s);
  CUSTOM_PYPTO_LAUNCH(pre_grad_kernels.get(), aclnnMhcPreBackward, to_contiguous(a.x),
                      to_contiguous(a.phi), to_contiguous(a.alpha), to_contiguous(a.grad_h_in),
                      to_contiguous(a.grad_h_post), to_contiguous(a.grad_h_res),
                      to_contiguous(a.inv_rms), to_contiguous(a.h_mix), to_contiguous(a.h_pre),
                      to_contiguous(a.h_post), to_contiguous(a.gamma), to_contiguous(a.grad_x_post),
                      static_cast<float>(a.hc_eps), out.grad_x, out.grad_phi, out.grad_alpha,
                      out.grad_bias, out.grad_gamma);
}

void sinkhorn_npu(const Sinkhorn::Arguments& a, const Sinkhorn::CallShape& s,
                  const Sinkhorn::Outputs& out) {
  if (!fits<Sinkhorn>(a.x, a, s)) return;
  const bool is_kept = a.out_flag == 1;
  CUSTOM_PYPTO_LAUNCH(sinkhorn_kernels.get(), aclnnMhcSinkhorn, to_contiguous(a.x),
                      static_cast<float>(a.eps), a.num_iters, out.y, result(is_kept, out.norm),
                      result(is_kept, out.sum));
}

void sinkhorn_grad_npu(const SinkhornGrad::Arguments& a, const SinkhornGrad::CallShape& s,
                       const SinkhornGrad::Outputs& out) {
  if (!fits<SinkhornGrad>(a.grad_y, a, s)) return;
  CUSTOM_PYPTO_LAUNCH(sinkhorn_grad_kernels.get(), aclnnMhcSinkhornBackward,
                      to_contiguous(a.grad_y), to_contiguous(a.norm), to_contiguous(a.sum),
                      out.grad_x);
}

void post_npu(const Post::Arguments& a, const Post::CallShape& s, const Post::Outputs& out) {
  if (!fits<Post>(a.x, a, s)) return;
  CUSTOM_PYPTO_LAUNCH(post_kernels.get(), aclnnMhcPost, to_contiguous(a.x), to_contiguous(a.h_res),
                      to_contiguous(a.h_out), to_contiguous(a.h_post), out.y);
}

void post_grad_npu(const PostGrad::Arguments& a, const PostGrad::CallShape& s,
                   const PostGrad::Outputs& out) {
  if (!fits<PostGrad>(a.x, a, s)) return;
  CUSTOM_PYPTO_LAUNCH(post_grad_kernels.get(), aclnnMhcPostBackward, to_contiguous(a.grad_y),
                      to_contiguous(a.x), to_contiguous(a.h_res), to_contiguous(a.h_out),
                      to_contiguous(a.h_post), out.grad_x, out.grad_h_res, out.grad_h_out,
                      out.grad_h_post);
}

}  // namespace custom_pypto_mhc

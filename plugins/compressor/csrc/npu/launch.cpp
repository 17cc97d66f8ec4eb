// The launches of CANN's kernels.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>
#include <torch/csrc/stable/ops.h>

#include <vector>

#include "registered.h"

namespace custom_pypto_compressor {
namespace {

using namespace custom_pypto;
using namespace custom_pypto::npu;
using Op = ops::npu_compressor;
using Train = ops::npu_compressor_train;
using Backward = ops::npu_compressor_backward;

const KernelChoice kernels(Op::name, {"aclnnCompressor"});
const KernelChoice train_kernels(Train::name, {"aclnnCompressor"});
const KernelChoice gradient_kernels(Backward::name, {"aclnnCompressorGrad"});

constexpr int64_t kPages = 1;  // cache_mode

void zero(Tensor tensor) { torch::stable::zero_(tensor); }

}  // namespace

void compressor_npu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  if (a.x.numel() == 0) return zero(out.cmp_kv);
  Op::check_limits(a, s);
  Op::check_limits_of_aclnnCompressor(a, s);
  // Rows that no window has keep what is in the memory: the kernel does not write them.
  std::vector<int64_t> sizes(out.cmp_kv.sizes().begin(), out.cmp_kv.sizes().end());
  sizes.insert(sizes.end() - 1, a.coff * a.cmp_ratio);
  // The kernel leaves the two undefined, but wants them as large as for training.
  const Tensor softmax_score = empty(sizes, ScalarType::Float, a.x);
  const Tensor kv = empty(sizes, ScalarType::Float, a.x);
  CUSTOM_PYPTO_LAUNCH(kernels.get(), aclnnCompressor, to_contiguous(a.x), to_contiguous(a.wkv),
                      to_contiguous(a.wgate), a.state_cache, to_contiguous(a.ape),
                      to_int32(a.state_block_table), to_int32(a.cu_seqlens), to_int32(a.seqused),
                      to_int32(a.start_pos), a.cmp_ratio, a.coff, a.cache_mode,
                      a.state_cache.stride(0), false, out.cmp_kv, softmax_score, kv);
}

void train_npu(const Train::Arguments& a, const Train::CallShape& s, const Train::Outputs& out) {
  // The gradient reads rows that no window has.
  for (const Tensor& each : {out.cmp_kv, out.softmax_score, out.kv}) zero(each);
  if (a.x.numel() == 0) return;
  Train::check_limits(a, s);
  // A table of zeros: no token is written to the state, and none is read from it.
  const int64_t block_size = ops::NPU_BLOCK_LIMIT;
  const Tensor state = empty({1, block_size, 2 * s.C}, ScalarType::Float, a.x);
  const int64_t longest = a.x.dim() == 2 ? s.T : s.S;
  const Tensor table = empty({s.B, (longest + block_size - 1) / block_size}, ScalarType::Int, a.x);
  zero(table);
  CUSTOM_PYPTO_LAUNCH(train_kernels.get(), aclnnCompressor, to_contiguous(a.x),
                      to_contiguous(a.wkv), to_contiguous(a.wgate), state, to_contiguous(a.ape),
                      table, to_int32(a.cu_seqlens), to_int32(a.seqused), std::nullopt, a.cmp_ratio,
                      a.coff, kPages, state.stride(0), true, out.cmp_kv, out.softmax_score, out.kv);
}

void backward_npu(const Backward::Arguments& a, const Backward::CallShape& s,
                  const Backward::Outputs& out) {
  if (a.x.numel() == 0) {
    for (const Tensor& each : {out.d_x, out.d_wkv, out.d_wgate, out.d_ape}) zero(each);
    return;
  }
  Backward::check_limits(a, s);
  CUSTOM_PYPTO_LAUNCH(gradient_kernels.get(), aclnnCompressorGrad, to_contiguous(a.x),
                      to_contiguous(a.wkv), to_contiguous(a.wgate), to_contiguous(a.d_cmp_kv),
                      to_contiguous(a.softmax_score), to_contiguous(a.kv), to_int32(a.cu_seqlens),
                      to_int32(a.seqused), to_int32(a.start_pos), a.cmp_ratio, a.coff, out.d_x,
                      out.d_wkv, out.d_wgate, out.d_ape);
}

}  // namespace custom_pypto_compressor

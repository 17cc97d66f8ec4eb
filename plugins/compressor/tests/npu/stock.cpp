// CANN's kernels of the ops, simulated: they compute with the CPU kernels. Parameters and limits
// are those of aclnnCompressor.md and aclnnCompressorGrad.md of its ops-transformer.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/need.h>

#include <initializer_list>
#include <tuple>

namespace {

using custom_pypto_simulator::call;
using custom_pypto_simulator::call_into;
using custom_pypto_simulator::need;
using custom_pypto_simulator::Optional;

void check_inputs(std::initializer_list<const at::Tensor*> tensors,
                  std::initializer_list<Optional> integers, const at::Tensor& x,
                  const at::Tensor& wkv, const Optional& cu_seqlens, int64_t ratio, int64_t coff) {
  need(x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16,
       "x must be FLOAT16 or BFLOAT16");
  for (const at::Tensor* each : tensors) {
    need(each->is_contiguous() && each->scalar_type() == x.scalar_type(),
         "x and weights must be contiguous and of one type");
  }
  for (const Optional& each : integers) {
    need(!each || (each->scalar_type() == at::kInt && each->is_contiguous()),
         "tables, lengths and positions must be contiguous and INT32");
  }
  need(x.size(-1) >= 1024 && x.size(-1) <= 10240 && x.size(-1) % 512 == 0, "H is not supported");
  const int64_t channels = wkv.size(0) / coff;
  need(channels == 128 || channels == 512, "D must be 128 or 512");
  need(ratio >= 2 && ratio <= 128 && (coff == 1 || coff == 2), "cmpRatio or coff is wrong");
  need(cu_seqlens.has_value() == (x.dim() == 2), "cuSeqlens goes with x of 2 dimensions");
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN(aclnnCompressor, at::Tensor x, at::Tensor wkv, at::Tensor wgate,
                       at::Tensor& stateCacheRef, at::Tensor ape, Optional stateBlockTable,
                       Optional cuSeqlens, Optional seqused, Optional startPos, int64_t cmpRatio,
                       int64_t coff, int64_t cacheMode, int64_t stateCacheStrideDim0,
                       bool gradEnabled, at::Tensor& cmpKv, at::Tensor& softmaxScore,
                       at::Tensor& kv) {
  check_inputs({&x, &wkv, &wgate, &cmpKv}, {stateBlockTable, cuSeqlens, seqused, startPos}, x, wkv,
               cuSeqlens, cmpRatio, coff);
  need(stateCacheRef.stride(0) == stateCacheStrideDim0, "stateCacheStrideDim0 is wrong");
  need(stateCacheRef.size(1) <= 1024 && stateCacheRef.stride(1) == stateCacheRef.size(2),
       "blocks must be contiguous and have at most 1024 tokens");
  need(stateBlockTable.has_value(), "stateBlockTable is needed");
  for (const at::Tensor* each : {&softmaxScore, &kv}) {
    need(each->scalar_type() == at::kFloat && each->numel() == cmpKv.numel() * coff * cmpRatio,
         "softmaxScore and kv must have a number for each token of each row");
  }
  if (!gradEnabled) {
    cmpKv.copy_(call<at::Tensor>("custom_pypto::npu_compressor", x, wkv, wgate, stateCacheRef, ape,
                                 cmpRatio, stateBlockTable, cuSeqlens, seqused, startPos, coff,
                                 cacheMode));
    return;
  }
  need(!startPos && stateBlockTable->eq(0).all().item<bool>(),
       "only whole sequences without a state are simulated for training");
  call_into(std::tie(cmpKv, softmaxScore, kv), "custom_pypto::npu_compressor_train", x, wkv, wgate,
            ape, cmpRatio, cuSeqlens, seqused, coff);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnCompressorGrad, at::Tensor x, at::Tensor wkv, at::Tensor wgate,
                       at::Tensor dCmpKv, at::Tensor softmaxScore, at::Tensor kv,
                       Optional cuSeqlens, Optional seqused, Optional startPos, int64_t cmpRatio,
                       int64_t coff, at::Tensor& dX, at::Tensor& dWkv, at::Tensor& dWgate,
                       at::Tensor& dApe) {
  check_inputs({&x, &wkv, &wgate, &dCmpKv}, {cuSeqlens, seqused, startPos}, x, wkv, cuSeqlens,
               cmpRatio, coff);
  need(x.numel() > 0 && dCmpKv.numel() > 0, "tensors must not be empty");
  call_into(std::tie(dX, dWkv, dWgate, dApe), "custom_pypto::npu_compressor_backward", dCmpKv, x,
            wkv, wgate, softmaxScore, kv, cuSeqlens, seqused, startPos, cmpRatio, coff);
}

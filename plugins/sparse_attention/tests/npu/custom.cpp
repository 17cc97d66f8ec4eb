// The kernels that opp packages have, simulated: they compute with the CPU kernels. Like the real
// one, that of the fused op takes what is in a weight's memory for fractal NZ order, whoever put it
// there.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/contiguous.h>

#include <stdexcept>
#include <vector>

// aclnnSparseFlashAttention of vllm-ascend and sgl-kernel-npu.
constexpr bool kHasPagedLse = true;
#include "sparse_flash_attention.h"

namespace {

at::Tensor nz(const at::Tensor& weight) {
  if (weight.dim() != 2 || weight.size(1) % 16 != 0 || weight.element_size() != 2) {
    throw std::invalid_argument(
        "weights must be matrices of a 16-bit type with a multiple of 16 columns");
  }
  return weight.view({weight.size(1) / 16, weight.size(0), 16});
}

}  // namespace

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnSparseAttentionPto, custom_pypto_simulator::contiguous,
                               std::vector<at::Tensor> x, at::Tensor& y0) {
  for (const size_t integers : {9, 12, 13}) {
    if (x.at(integers).scalar_type() != at::kInt) {
      throw std::invalid_argument("cache_index, block_table and act_seqs must be int32");
    }
  }
  y0.copy_(custom_pypto_simulator::call<at::Tensor>(
      "custom_pypto::npu_sparse_attention_pto", x.at(0), nz(x.at(1)), nz(x.at(2)), x.at(3),
      nz(x.at(4)), x.at(5), x.at(6), x.at(7), x.at(8), x.at(9), x.at(10), x.at(11), x.at(12),
      x.at(13), nz(x.at(14)), nz(x.at(15)), nz(x.at(16)), x.at(17), x.at(18), x.at(19)));
}

// CANN's kernel of this op, simulated, in eager mode and in graphs; it calls the CPU kernel.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/contiguous.h>

#include <stdexcept>

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnAdvanceStep, custom_pypto_simulator::contiguous,
                               at::Tensor& input_tokensRef, at::Tensor sampled_token_ids,
                               at::Tensor& input_positionsRef, at::Tensor& seq_lensRef,
                               at::Tensor& slot_mappingRef, at::Tensor block_tables,
                               int64_t num_seqs, int64_t num_queries, int64_t block_size) {
  for (const at::Tensor& each : {input_tokensRef, sampled_token_ids, input_positionsRef,
                                 seq_lensRef, slot_mappingRef, block_tables}) {
    if (each.scalar_type() != at::kLong) throw std::runtime_error("int64 only");
  }
  if (num_queries < 1 || num_seqs <= num_queries || sampled_token_ids.dim() != 2) {
    throw std::runtime_error("at least one query, and fewer than sequences");
  }
  custom_pypto_simulator::call<void>("custom_pypto::npu_advance_step_flashattn", input_tokensRef,
                                     sampled_token_ids, input_positionsRef, seq_lensRef,
                                     slot_mappingRef, block_tables, num_seqs, num_queries,
                                     block_size);
}

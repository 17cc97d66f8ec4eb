// What the ops do on a CPU, and what all devices share.
#pragma once

#include "visible_rows.h"

namespace custom_pypto_sparse_flash_mla {

using Forward = ops::npu_sparse_flash_mla;
using Grad = ops::npu_sparse_flash_mla_grad;
using Metadata = ops::npu_sparse_flash_mla_metadata;

// Of the op and its gradient; the gradient takes no pages.
template <class Arguments>
RowsArguments ori_arguments(const Arguments& a, const Tensor* block_table = nullptr) {
  return {"ori",
          a.ori_kv,
          block_table,
          a.cu_seqlens_ori_kv,
          a.seqused_ori_kv,
          a.ori_sparse_indices,
          a.ori_topk_length};
}
template <class Arguments>
RowsArguments cmp_arguments(const Arguments& a, const Tensor* block_table = nullptr) {
  return {"cmp",
          a.cmp_kv,
          block_table,
          a.cu_seqlens_cmp_kv,
          a.seqused_cmp_kv,
          a.cmp_sparse_indices,
          a.cmp_topk_length};
}

// The numbers of sinks [heads] in fp32 or fp64; none if it is None. A sink is a score of a head
// that takes weight and has no value.
template <class Real>
std::vector<Real> read_sinks(const std::optional<Tensor>& sinks) {
  std::vector<Real> numbers;
  if (!sinks) return numbers;
  const Tensor values = to_contiguous(*sinks);
  const bool is_wide = values.scalar_type() == ScalarType::Double;
  for (int64_t i = 0; i < values.numel(); ++i) {
    numbers.push_back(is_wide ? static_cast<Real>(values.const_data_ptr<double>()[i])
                              : static_cast<Real>(values.const_data_ptr<float>()[i]));
  }
  return numbers;
}

// Checks lengths; indices and blocks are checked as attention comes to them.
VisibleRows visible_rows(const Forward::Arguments& arguments, const Forward::CallShape& sizes);

// Fills the outputs. lse is -inf, and out 0, where a token attends to nothing; a sink is nothing.
void attention(const Forward::Arguments& arguments, const Forward::CallShape& sizes,
               const Forward::Outputs& outputs);

// The same in fp64, in its plain form, which gradients are checked with.
void attention_fp64(const Forward::Arguments& arguments, const Forward::CallShape& sizes,
                    const Forward::Outputs& outputs);

// The results that Grad allocates, on the device of q: of what is None, [0].
Grad::Outputs allocate(const Grad::Arguments& arguments);
void fill_zeros(const Grad::Outputs& outputs);

// The bits do not depend on the number of threads.
Grad::Outputs attention_grad(const Grad::Arguments& arguments, const Grad::CallShape& sizes);

// The first tensor that is given: one of them is, since a kernel of a device is called.
const Tensor& given_tensor(const Metadata::Arguments& arguments);

// Launch CANN's kernels, which queue their work: nothing waits for it.
Grad::Outputs launch_grad(const Grad::Arguments& arguments, const Grad::CallShape& sizes);
Metadata::Outputs launch_metadata(const Metadata::Arguments& arguments,
                                  const Metadata::CallShape& sizes);

}  // namespace custom_pypto_sparse_flash_mla

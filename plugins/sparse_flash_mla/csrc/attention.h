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
  return {"ori_kv",
          a.ori_kv,
          "ori_block_table",
          block_table,
          "cu_seqlens_ori_kv",
          a.cu_seqlens_ori_kv,
          "seqused_ori_kv",
          a.seqused_ori_kv,
          "ori_sparse_indices",
          a.ori_sparse_indices,
          "ori_topk_length",
          a.ori_topk_length};
}
template <class Arguments>
RowsArguments cmp_arguments(const Arguments& a, const Tensor* block_table = nullptr) {
  return {"cmp_kv",
          a.cmp_kv,
          "cmp_block_table",
          block_table,
          "cu_seqlens_cmp_kv",
          a.cu_seqlens_cmp_kv,
          "seqused_cmp_kv",
          a.seqused_cmp_kv,
          "cmp_sparse_indices",
          a.cmp_sparse_indices,
          "cmp_topk_length",
          a.cmp_topk_length};
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

}  // namespace custom_pypto_sparse_flash_mla

// The kernels of the ops, and their registration.
#include <custom_pypto/plugin.h>

#include <optional>
#include <vector>

#include "attention.h"
#include "npu/kernels.h"
#include "pieces.h"
#include "prologs.h"

namespace custom_pypto_sparse_attention {
namespace {

using ops::npu_indexer_prolog;
using ops::npu_mla_prolog;
using ops::npu_sparse_attention_pto;
using ops::npu_sparse_flash_attention;
using ops::npu_sparse_flash_attention_grad;

MlaOutputs mla_prolog_cpu(const npu_mla_prolog::Arguments& a, const npu_mla_prolog::CallShape& s) {
  return MlaProlog(npu_mla_prolog::name, ops::mla::arguments(a), ops::mla::call_shape(s)).run();
}

MlaOutputs mla_prolog_npu(const npu_mla_prolog::Arguments& a, const npu_mla_prolog::CallShape& s) {
  return npu::mla_prolog(npu_mla_prolog::name, ops::mla::arguments(a), ops::mla::call_shape(s));
}

IndexerOutputs indexer_prolog_cpu(const npu_indexer_prolog::Arguments& a,
                                  const npu_indexer_prolog::CallShape& s) {
  const IndexerProlog prolog(npu_indexer_prolog::name, ops::indexer::arguments(a),
                             ops::indexer::call_shape(s));
  return prolog.run(a.q_norm);
}

IndexerOutputs indexer_prolog_npu(const npu_indexer_prolog::Arguments& a,
                                  const npu_indexer_prolog::CallShape& s) {
  return npu::indexer_prolog(npu_indexer_prolog::name, ops::indexer::arguments(a),
                             ops::indexer::call_shape(s), a.q_norm);
}

void sparse_flash_attention_cpu(const npu_sparse_flash_attention::Arguments& a,
                                const npu_sparse_flash_attention::CallShape& s,
                                const npu_sparse_flash_attention::Outputs& outputs) {
  const char* op = npu_sparse_flash_attention::name;
  float* lse = a.return_softmax_lse ? static_cast<float*>(outputs.lse.mutable_data_ptr()) : nullptr;
  if (a.query.scalar_type() == ScalarType::Double) return attend_fp64(op, a, s, outputs.out, lse);
  Attention(op, a, s).run(outputs.out, lse);
}

void sparse_attention_cpu(const npu_sparse_attention_pto::Arguments& a,
                          const npu_sparse_attention_pto::CallShape& s,
                          const npu_sparse_attention_pto::Outputs& outputs) {
  // All that can be wrong is found before the first cache is written.
  const char* op = npu_sparse_attention_pto::name;
  const MlaProlog mla(op, ops::mla::arguments(a), ops::mla::call_shape(s));
  const IndexerProlog indexer(op, ops::indexer::arguments(a), ops::indexer::call_shape(s));
  check_blocks(op, a.block_table, read_key_lengths(op, "act_seqs", a.act_seqs, s.M, s.block_size),
               mla.kv_cache());
  if (token_count(s.tokens) == 0) return;

  // A call that has no memory for a later step must leave the caches as they were.
  KeptRows kept[] = {mla.keep_kv(), mla.keep_kr(), indexer.keep_keys()};
  const MlaOutputs prolog = mla.run();
  const Tensor selected = select_keys(a, indexer.run(prolog.q_norm));
  const SelectedAttention attention(a, s, prolog, selected);
  const AttentionArguments& b = attention.arguments();
  Attention(op, b, npu_sparse_flash_attention::check(b)).run(outputs.out, nullptr);
  for (KeptRows& rows : kept) rows.release();
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<npu_mla_prolog>().impl<&mla_prolog_cpu>("CPU").impl<&mla_prolog_npu>("PrivateUse1");
  plugin.def<npu_indexer_prolog>().impl<&indexer_prolog_cpu>("CPU").impl<&indexer_prolog_npu>(
      "PrivateUse1");
  plugin.def<npu_sparse_flash_attention>()
      .impl<&sparse_flash_attention_cpu>("CPU")
      .impl<&npu::attention>("PrivateUse1");
  plugin.def<npu_sparse_flash_attention_grad>()
      .impl<&attention_grad>("CPU")
      .impl<&npu::attention_grad>("PrivateUse1");
  plugin.def<npu_sparse_attention_pto>()
      .impl<&sparse_attention_cpu>("CPU")
      .impl<&npu::sparse_attention>("PrivateUse1");
}

}  // namespace custom_pypto_sparse_attention

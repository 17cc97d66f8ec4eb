// The CPU kernels of the ops, and the registration of all kernels.
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>

#include "cpu/indexer_kernels.h"
#include "npu/launch.h"
#include "ops.h"
#include "problem.h"
#include "schedule.h"
#include "selected_rows.h"

namespace custom_pypto_lightning_indexer {
namespace {

using Indexer = ops::npu_lightning_indexer_pto;
using QuantIndexer = ops::npu_quant_lightning_indexer;
using ValuesIndexer = ops::npu_lightning_indexer;
using IndexerV2 = ops::npu_lightning_indexer_v2;
using QuantIndexerV2 = ops::npu_quant_lightning_indexer_v2;

// `scores`, if given, gets those of the positions.
template <class AnyCall>
void select_keys(const AnyCall& call, const Kernels& kernels, const Tensor& positions,
                 const Tensor* scores = nullptr) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  read_problem(call, problem);
  Selected out{static_cast<int32_t*>(positions.mutable_data_ptr())};
  if (scores != nullptr) {
    out.scores = scores->mutable_data_ptr();
    out.score_element = element_of(scores->scalar_type());
  }
  schedule.run(problem, kernels, out);
}

// int8 keys have kernels of their own.
Kernels quant_kernels(const Tensor& query) {
  if (query.scalar_type() != ScalarType::Char) return kernels();
  return Kernels{int8_kernels(), kernels()};
}

void lightning_indexer_cpu(const Indexer::Arguments& a, const Indexer::CallShape& s,
                           const Indexer::Outputs& out) {
  select_keys(make_call(Indexer::name, a, s), kernels(), out.positions);
}

void quant_lightning_indexer_cpu(const QuantIndexer::Arguments& a, const QuantIndexer::CallShape& s,
                                 const QuantIndexer::Outputs& out) {
  Call call = make_call(QuantIndexer::name, a, s);
  call.query_scales = &a.query_dequant_scale;
  call.key_scales = &a.key_dequant_scale;
  select_keys(call, quant_kernels(a.query), out.positions);
}

// fp64 is for gradients: keys are selected by their scores in fp32.
void indexer_with_values_cpu(const ValuesIndexer::Arguments& a, const ValuesIndexer::CallShape& s,
                             const ValuesIndexer::Outputs& out) {
  Call call = make_call(ValuesIndexer::name, a, s);
  if (a.query.scalar_type() == ScalarType::Double) {
    const Tensor query = to_dtype(a.query, ScalarType::Float);
    const Tensor key = to_dtype(a.key, ScalarType::Float);
    const Tensor weights = to_dtype(a.weights, ScalarType::Float);
    const ops::indexer::Arguments b = {query,
                                       key,
                                       weights,
                                       a.actual_seq_lengths_query,
                                       a.actual_seq_lengths_key,
                                       a.block_table,
                                       a.layout_query,
                                       a.layout_key,
                                       a.sparse_count,
                                       a.sparse_mode};
    select_keys(Call{call.op, b, call.sizes}, kernels(), out.sparse_indices);
  } else {
    select_keys(call, kernels(), out.sparse_indices);
  }
  if (a.return_value) score_selected(call, out.sparse_indices, out.sparse_values);
}

void lightning_indexer_v2_cpu(const IndexerV2::Arguments& a, const IndexerV2::CallShape& s,
                              const IndexerV2::Outputs& out) {
  const CallV2 call = {IndexerV2::name,
                       a.q,
                       a.k,
                       a.w,
                       ops::indexer_v2::arguments(a),
                       ops::indexer_v2::call_shape(s)};
  select_keys(call, kernels(), out.sparse_indices, a.return_value ? &out.sparse_values : nullptr);
}

void quant_lightning_indexer_v2_cpu(const QuantIndexerV2::Arguments& a,
                                    const QuantIndexerV2::CallShape& s,
                                    const QuantIndexerV2::Outputs& out) {
  const CallV2 call = {QuantIndexerV2::name,
                       a.query,
                       a.key,
                       a.weights,
                       ops::indexer_v2::arguments(a),
                       ops::indexer_v2::call_shape(s),
                       &a.query_dequant_scale,
                       &a.key_dequant_scale};
  select_keys(call, quant_kernels(a.query), out.sparse_indices,
              a.return_value ? &out.sparse_values : nullptr);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Indexer>().impl<&lightning_indexer_cpu>("CPU").impl<&npu::launch>("PrivateUse1");
  plugin.def<QuantIndexer>().impl<&quant_lightning_indexer_cpu>("CPU").impl<&npu::launch_quant>(
      "PrivateUse1");
  plugin.def<ValuesIndexer>().impl<&indexer_with_values_cpu>("CPU").impl<&npu::launch_values>(
      "PrivateUse1");
  plugin.def<ops::npu_lightning_indexer_grad>()
      .impl<&differentiate_selected>("CPU")
      .impl<&npu::launch_grad>("PrivateUse1");
  plugin.def<IndexerV2>().impl<&lightning_indexer_v2_cpu>("CPU").impl<&npu::launch_v2>(
      "PrivateUse1");
  plugin.def<QuantIndexerV2>()
      .impl<&quant_lightning_indexer_v2_cpu>("CPU")
      .impl<&npu::launch_quant_v2>("PrivateUse1");
}

}  // namespace custom_pypto_lightning_indexer

// The CPU kernels of the ops, and the registration of all kernels.
#include <custom_pypto/tensor_ops.h>

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

void select_keys(const Call& call, const Kernels& kernels, const Tensor& positions) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  read_problem(call, problem);
  schedule.run(problem, kernels, static_cast<int32_t*>(positions.mutable_data_ptr()));
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
  const bool is_int8 = a.query.scalar_type() == ScalarType::Char;
  select_keys(call, is_int8 ? Kernels{int8_kernels(), kernels()} : kernels(), out.positions);
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
}

}  // namespace custom_pypto_lightning_indexer

// npu_lightning_indexer_pto and npu_quant_lightning_indexer: their CPU kernels, and the
// registration of all kernels.
#include "cpu/kernels.h"
#include "npu/launch.h"
#include "ops.h"
#include "problem.h"
#include "schedule.h"

namespace custom_pypto_lightning_indexer {
namespace {

using Indexer = ops::npu_lightning_indexer_pto;
using QuantIndexer = ops::npu_quant_lightning_indexer;

void select_keys(const Call& call, const Kernels& kernels, const Tensor& positions) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  read_problem(call, problem);
  schedule.run(problem, kernels, static_cast<int32_t*>(positions.mutable_data_ptr()));
}

void lightning_indexer_cpu(const Indexer::Arguments& a, const Indexer::Sizes& s,
                           const Indexer::Outputs& out) {
  select_keys(call_of(Indexer::name, a, s), kernels(), out.positions);
}

void quant_lightning_indexer_cpu(const QuantIndexer::Arguments& a, const QuantIndexer::Sizes& s,
                                 const QuantIndexer::Outputs& out) {
  Call call = call_of(QuantIndexer::name, a, s);
  call.query_scales = &a.query_dequant_scale;
  call.key_scales = &a.key_dequant_scale;
  select_keys(call, {int8_kernels(), kernels()}, out.positions);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Indexer>().impl<&lightning_indexer_cpu>("CPU").impl<&npu::launch>("PrivateUse1");
  plugin.def<QuantIndexer>().impl<&quant_lightning_indexer_cpu>("CPU").impl<&npu::launch_quant>(
      "PrivateUse1");
}

}  // namespace custom_pypto_lightning_indexer

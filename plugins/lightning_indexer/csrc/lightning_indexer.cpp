// npu_lightning_indexer_pto: its CPU kernel, and the registration of its kernels.
#include "cpu/kernels.h"
#include "npu/launch.h"
#include "ops.h"
#include "problem.h"
#include "schedule.h"

namespace custom_pypto_lightning_indexer {
namespace {

void lightning_indexer_cpu(const Op::Arguments& arguments, const Op::Sizes& sizes,
                           const Op::Outputs& out) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  read_problem(arguments, sizes, problem);
  schedule.run(problem, kernels(), static_cast<int32_t*>(out.positions.mutable_data_ptr()));
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&lightning_indexer_cpu>("CPU").impl<&npu::launch>("PrivateUse1");
}

}  // namespace custom_pypto_lightning_indexer

// The indexer with a clock around its top-k; selection.py compiles it instead of the plugin's own
// file of this name.
#include <atomic>
#include <chrono>
#include <optional>

#include "cpu/kernels.h"
#include "ops.h"
#include "problem.h"
#include "schedule.h"

namespace custom_pypto_lightning_indexer {
namespace {

std::atomic<int64_t> nanoseconds;

void clocked_select(const int32_t* ranks, int64_t count, int64_t limit, char* scratch,
                    int32_t* out) {
  const auto start = std::chrono::steady_clock::now();
  kernels().select(ranks, count, limit, scratch, out);
  nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

using Op = ops::npu_lightning_indexer_pto;
using Clocked = ops::npu_lightning_indexer_pto_clocked;

// The op's result, and the seconds of its top-k, summed over all threads.
Clocked::Outputs clocked(const Clocked::Arguments& a, const Clocked::Sizes&) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  const std::optional<Tensor> none;
  const std::optional<Tensor> lengths(a.actual_seq_lengths_key);
  const std::optional<Tensor> blocks(a.block_table);
  const Op::Arguments arguments{a.query, a.key,  a.weights, none,           lengths,
                                blocks,  "BSND", "PA_BSND", a.sparse_count, 3};
  const Op::Sizes sizes = Op::check(arguments);
  const Op::Outputs out = Op::allocate(arguments, sizes);
  read_problem(make_call(Op::name, arguments, sizes), problem);
  Kernels with_clock = kernels();
  with_clock.select = &clocked_select;
  nanoseconds = 0;
  schedule.run(problem, with_clock, static_cast<int32_t*>(out.positions.mutable_data_ptr()));
  return {out.positions, static_cast<double>(nanoseconds.load()) * 1e-9};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Clocked>().impl<&clocked>("CPU"); }

}  // namespace custom_pypto_lightning_indexer

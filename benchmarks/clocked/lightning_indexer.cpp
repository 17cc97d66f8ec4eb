// The indexer with a clock around its top-k; selection.py compiles it instead of the plugin's own
// file of this name.
#include <custom_pypto/empty.h>
#include <custom_pypto/plugin.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <tuple>

#include "cpu/kernels.h"
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

// The op's result, and the seconds of its top-k, summed over all threads.
std::tuple<Tensor, double> clocked(const Tensor& query, const Tensor& key, const Tensor& weights,
                                   const Tensor& actual_seq_lengths_key, const Tensor& block_table,
                                   int64_t sparse_count) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  const std::optional<Tensor> none;
  const std::optional<Tensor> lengths(actual_seq_lengths_key);
  const std::optional<Tensor> blocks(block_table);
  const Arguments arguments{query,  key,    weights,   none,         lengths,
                            blocks, "BSND", "PA_BSND", sparse_count, 3};
  read_problem(arguments, problem);
  Tensor positions = custom_pypto::empty({query.size(0), query.size(1), key.size(2), sparse_count},
                                         ScalarType::Int, query);
  Kernels with_clock = kernels();
  with_clock.select = &clocked_select;
  nanoseconds = 0;
  schedule.run(problem, with_clock, static_cast<int32_t*>(positions.mutable_data_ptr()));
  return {positions, static_cast<double>(nanoseconds.load()) * 1e-9};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "npu_lightning_indexer_pto_clocked(Tensor query, Tensor key, Tensor weights, "
          "Tensor actual_seq_lengths_key, Tensor block_table, int sparse_count) "
          "-> (Tensor, float)"))
      .impl<&clocked>("CPU");
}

}  // namespace custom_pypto_lightning_indexer

// npu_lightning_indexer_pto: schema, kernels, registration.
#include <custom_pypto/empty.h>
#include <custom_pypto/plugin.h>

#include <exception>
#include <limits>
#include <string_view>

#include "cpu/kernels.h"
#include "npu/select.h"
#include "problem.h"
#include "schedule.h"

namespace custom_pypto_lightning_indexer {
namespace {

Tensor empty_positions(const Arguments& a) {
  const int64_t key_heads = a.key.size(a.key.dim() - 2);
  try {
    if (a.query.dim() == 4) {
      return custom_pypto::empty({a.query.size(0), a.query.size(1), key_heads, a.sparse_count},
                                 ScalarType::Int, a.query);
    }
    return custom_pypto::empty({a.query.size(0), key_heads, a.sparse_count}, ScalarType::Int,
                               a.query);
  } catch (const std::exception& error) {
    custom_pypto::fail(kOp, "sparse_count", a.sparse_count,
                       " makes a result for which there is no memory: ", error.what());
  }
}

Tensor lightning_indexer_cpu(const Tensor& query, const Tensor& key, const Tensor& weights,
                             const std::optional<Tensor>& actual_seq_lengths_query,
                             const std::optional<Tensor>& actual_seq_lengths_key,
                             const std::optional<Tensor>& block_table,
                             std::string_view layout_query, std::string_view layout_key,
                             int64_t sparse_count, int64_t sparse_mode) {
  thread_local Problem problem;
  thread_local Schedule schedule;
  const Arguments arguments{query,
                            key,
                            weights,
                            actual_seq_lengths_query,
                            actual_seq_lengths_key,
                            block_table,
                            layout_query,
                            layout_key,
                            sparse_count,
                            sparse_mode};
  read_problem(arguments, problem);
  Tensor positions = empty_positions(arguments);
  schedule.run(problem, kernels(), static_cast<int32_t*>(positions.mutable_data_ptr()));
  return positions;
}

Tensor lightning_indexer_npu(const Tensor& query, const Tensor& key, const Tensor& weights,
                             const std::optional<Tensor>& actual_seq_lengths_query,
                             const std::optional<Tensor>& actual_seq_lengths_key,
                             const std::optional<Tensor>& block_table,
                             std::string_view layout_query, std::string_view layout_key,
                             int64_t sparse_count, int64_t sparse_mode) {
  const Arguments arguments{query,
                            key,
                            weights,
                            actual_seq_lengths_query,
                            actual_seq_lengths_key,
                            block_table,
                            layout_query,
                            layout_key,
                            sparse_count,
                            sparse_mode};
  check_arguments(arguments);
  Tensor positions = empty_positions(arguments);
  npu::select(arguments, positions);
  return positions;
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "npu_lightning_indexer_pto(Tensor query, Tensor key, Tensor weights, *, "
          "Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, "
          "Tensor? block_table=None, str layout_query='BSND', str layout_key='PA_BSND', "
          "int sparse_count=2048, int sparse_mode=3) -> Tensor"))
      .impl<&lightning_indexer_cpu>("CPU")
      .impl<&lightning_indexer_npu>("PrivateUse1");
}

}  // namespace custom_pypto_lightning_indexer

// No-ops with the schemas of our ops, registered through torch's own C++ interface: the cost of a
// call without checks, allocation and kernel.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace {

at::Tensor sum(const at::Tensor& self, const at::Tensor&) { return self; }

at::Tensor choose(const at::Tensor& query, const at::Tensor&, const at::Tensor&,
                  const std::optional<at::Tensor>&, const std::optional<at::Tensor>&,
                  const std::optional<at::Tensor>&, std::string_view, std::string_view, int64_t,
                  int64_t) {
  return query;
}

std::tuple<at::Tensor, at::Tensor> choose_with_values(const at::Tensor& query,
                                                      const at::Tensor& key, const at::Tensor&,
                                                      const std::optional<at::Tensor>&,
                                                      const std::optional<at::Tensor>&,
                                                      const std::optional<at::Tensor>&,
                                                      std::string_view, std::string_view, int64_t,
                                                      int64_t, int64_t, int64_t, bool) {
  return {query, key};
}

std::tuple<at::Tensor, at::Tensor> attend(const at::Tensor& query, const at::Tensor& query_rope,
                                          const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                          const std::optional<at::Tensor>&,
                                          const std::optional<at::Tensor>&, double,
                                          const std::optional<at::Tensor>&, int64_t, bool,
                                          std::string_view) {
  return {query, query_rope};
}

}  // namespace

TORCH_LIBRARY(custom_pypto_benchmark_no_op, library) {
  library.def("add_custom(Tensor self, Tensor other) -> Tensor");
  library.def(
      "npu_lightning_indexer_pto(Tensor query, Tensor key, Tensor weights, *, "
      "Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, "
      "Tensor? block_table=None, str layout_query='BSND', str layout_key='PA_BSND', "
      "int sparse_count=2048, int sparse_mode=3) -> Tensor");
  library.def(
      "npu_lightning_indexer(Tensor query, Tensor key, Tensor weights, *, "
      "Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, "
      "Tensor? block_table=None, str layout_query='BSND', str layout_key='BSND', "
      "int sparse_count=2048, int sparse_mode=3, int pre_tokens=9223372036854775807, "
      "int next_tokens=9223372036854775807, bool return_value=False) -> (Tensor, Tensor)");
  library.def(
      "npu_sparse_flash_attention(Tensor query, Tensor query_rope, Tensor kv_cache, "
      "Tensor kr_cache, Tensor sparse_indices, Tensor? block_table=None, "
      "Tensor? actual_seq_lengths_kv=None, *, float scale, "
      "Tensor? actual_seq_lengths_query=None, int sparse_mode=3, bool return_softmax_lse=False, "
      "str layout_kv='PA_BSND') -> (Tensor, Tensor)");
  library.impl("add_custom", c10::kCPU, &sum);
  library.impl("npu_lightning_indexer_pto", c10::kCPU, &choose);
  library.impl("npu_lightning_indexer", c10::kCPU, &choose_with_values);
  library.impl("npu_sparse_flash_attention", c10::kCPU, &attend);
}

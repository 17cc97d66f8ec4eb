// Kernels that do nothing, registered through torch's own C++ interface: the cost of a call without
// checks, allocation and kernel.
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

// no_op.py defines them, with the schemas of our ops.
TORCH_LIBRARY_IMPL(custom_pypto_benchmark_no_op, CPU, library) {
  library.impl("add_custom", &sum);
  library.impl("npu_lightning_indexer_pto", &choose);
  library.impl("npu_lightning_indexer", &choose_with_values);
  library.impl("npu_sparse_flash_attention", &attend);
}

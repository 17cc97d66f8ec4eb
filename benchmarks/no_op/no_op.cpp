// No-ops with the schemas of our ops, registered through torch's own C++ interface: the cost of a
// call without checks, allocation and kernel.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>
#include <string_view>

namespace {

at::Tensor sum(const at::Tensor& self, const at::Tensor&) { return self; }

at::Tensor choose(const at::Tensor& query, const at::Tensor&, const at::Tensor&,
                  const std::optional<at::Tensor>&, const std::optional<at::Tensor>&,
                  const std::optional<at::Tensor>&, std::string_view, std::string_view, int64_t,
                  int64_t) {
  return query;
}

}  // namespace

TORCH_LIBRARY(custom_pypto_benchmark_no_op, library) {
  library.def("add_custom(Tensor self, Tensor other) -> Tensor");
  library.def(
      "npu_lightning_indexer_pto(Tensor query, Tensor key, Tensor weights, *, "
      "Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, "
      "Tensor? block_table=None, str layout_query='BSND', str layout_key='PA_BSND', "
      "int sparse_count=2048, int sparse_mode=3) -> Tensor");
  library.impl("add_custom", c10::kCPU, &sum);
  library.impl("npu_lightning_indexer_pto", c10::kCPU, &choose);
}

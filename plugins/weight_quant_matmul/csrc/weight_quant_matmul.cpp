// npu_weight_quant_batchmatmul on the CPU, and the registration.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/linear.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <vector>

#include "cpu/weight_quant_kernels.h"
#include "ops.h"

namespace custom_pypto_weight_quant_matmul {
namespace {

using namespace custom_pypto;
using Op = ops::npu_weight_quant_batchmatmul;

// One number for each group and column, contiguous.
Tensor for_columns(const Tensor& numbers, int64_t groups, int64_t columns) {
  const Tensor rows = numbers.dim() == 1 ? torch::stable::unsqueeze(numbers, 0) : numbers;
  const std::vector<int64_t> sizes = {groups, columns};
  return to_contiguous(call_op<Tensor>("aten::expand", "", rows, sizes, false));
}

void multiply_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  if (out.result.numel() == 0) return;
  const Tensor rows = to_contiguous(a.x);
  const Tensor weight = to_contiguous(torch::stable::transpose(a.weight, 0, 1));
  const int64_t group = a.antiquant_group_size == 0 ? s.K : a.antiquant_group_size;
  const int64_t groups = divide_up(s.K, group);
  const Tensor scale = for_columns(a.antiquant_scale, groups, s.N);
  const std::optional<Tensor> offset =
      a.antiquant_offset ? std::optional(for_columns(*a.antiquant_offset, groups, s.N))
                         : std::nullopt;
  const std::optional<Tensor> bias =
      a.bias ? std::optional(to_contiguous(to_dtype(*a.bias, ScalarType::Float))) : std::nullopt;
  cpu::LinearTask task = {};
  task.rows = rows.const_data_ptr();
  task.count = out.result.numel() / s.N;
  task.depth = s.K;
  task.weight = weight.const_data_ptr();
  task.scale = scale.const_data_ptr();
  task.offset = offset ? offset->const_data_ptr() : nullptr;
  task.group = group;
  task.bias = bias ? bias->const_data_ptr() : nullptr;
  task.has_fp32_bias = true;
  task.last = task.out_stride = task.scale_stride = s.N;
  task.out = out.result.mutable_data_ptr();
  const KernelTable& table = kernels();
  const auto& of_rows = weight.scalar_type() == ScalarType::Char ? table.int8 : table.int4;
  multiply_linear(of_rows[float_index(rows.scalar_type())], task);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&multiply_cpu>("CPU").impl<&Op::launch>("PrivateUse1");
}

}  // namespace custom_pypto_weight_quant_matmul

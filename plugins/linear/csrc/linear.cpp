// linear on the CPU, its hand-over to torch, and the registration.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/linear.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>
#include <custom_pypto_blocks/torch_product.h>

#include "cpu/linear_kernels.h"
#include "ops.h"

namespace custom_pypto_linear {
namespace {

using namespace custom_pypto;
using Op = ops::linear;

// The sizes of a call.
struct Sizes {
  int64_t rows;
  int64_t depth;
  int64_t columns;
};

Sizes sizes_of(const Op::Arguments& a, const Op::Outputs& out) {
  const int64_t columns = a.weight.size(0);
  return {columns == 0 ? 0 : out.result.numel() / columns, a.weight.size(1), columns};
}

// By torch's own ops, on any device. The form with `out` ignores autocast, as this op does.
void multiply_by_torch(const Op::Arguments& a, const Op::CallShape&, const Op::Outputs& out) {
  const Sizes sizes = sizes_of(a, out);
  if (out.result.numel() == 0) return;
  const npu::NoGradGuard no_grad;
  const Tensor rows = torch::stable::view(to_contiguous(a.input), {sizes.rows, sizes.depth});
  const Tensor result = torch::stable::view(out.result, {sizes.rows, sizes.columns});
  call_op<Tensor>("aten::linear", "out", rows, a.weight, a.bias, result);
}

void linear_npu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  Op::check_limits(a, s);
  multiply_by_torch(a, s, out);
}

void linear_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  const Sizes sizes = sizes_of(a, out);
  const bool copies = !a.weight.is_contiguous();
  if (is_torch_faster(a.input.scalar_type(), sizes.rows, copies))
    return multiply_by_torch(a, s, out);
  const Tensor rows = to_contiguous(a.input);
  const Tensor weight = to_contiguous(a.weight);
  const bool has_bias = a.bias.has_value();
  const Tensor bias = has_bias ? to_contiguous(*a.bias) : weight;
  cpu::LinearTask task = {};
  task.rows = rows.const_data_ptr();
  task.count = sizes.rows;
  task.depth = sizes.depth;
  task.weight = weight.const_data_ptr();
  task.bias = has_bias ? bias.const_data_ptr() : nullptr;
  task.last = task.out_stride = sizes.columns;
  task.out = out.result.mutable_data_ptr();
  multiply_linear(kernels().linear[float_index(rows.scalar_type())], task);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&linear_cpu>("CPU").impl<&linear_npu>("PrivateUse1");
}

}  // namespace custom_pypto_linear

// linear on the CPU, its hand-over to torch, and the registration.
#include <custom_pypto/current_isa.h>
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/linear.h>
#include <custom_pypto_blocks/npu/tensor_ops.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "cpu/linear_kernels.h"
#include "ops.h"

namespace custom_pypto_linear {
namespace {

using namespace custom_pypto;
using Op = ops::linear;

// Whether this processor has AVX-512 FP16. torch multiplies fp16 numbers with it.
bool has_avx512_fp16() {
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1) != 0;
#else
  return false;
#endif
}

// Whether torch's own product takes less time. Measured on a Xeon with AMX, for the instruction set
// of our kernels, with torch limited to the same one:
// - fp32: torch is faster from some 48 rows on, and where it need not copy the weight;
// - bf16: torch is faster from 7 rows on where it has instructions of bf16, of which AMX is the
//   fastest; elsewhere ours is, 3 to 6 times from 4 rows on;
// - fp16: torch is faster from 64 rows on with AVX-512 FP16; elsewhere ours is, 3 to 9 times from 4
//   rows on;
// - a weight that must be copied takes as long as a product of torch with some 16 rows.
bool is_torch_faster(const Op::Arguments& a, int64_t rows) {
  static const Isa isa = ordinary_isa(current_isa());
  static const bool has_fp16 = isa == Isa::avx512_bf16 && has_avx512_fp16();
  static const bool has_bf16 = isa == Isa::avx512_bf16 || isa == Isa::neon_bf16;
  const bool copies = !a.weight.is_contiguous();
  switch (a.input.scalar_type()) {
    case ScalarType::BFloat16:
      return has_bf16 ? copies || rows > 6 : copies && rows <= 16;
    case ScalarType::Half:
      return has_fp16 ? copies || rows > 63 : copies && rows <= 16;
    case ScalarType::Float:
      return copies || rows > 47;
    default:
      return true;
  }
}

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
  if (is_torch_faster(a, sizes.rows)) return multiply_by_torch(a, s, out);
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
  multiply_linear(kernels().linear[static_cast<int>(element_of(rows.scalar_type()))], task);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&linear_cpu>("CPU").impl<&linear_npu>("PrivateUse1");
}

}  // namespace custom_pypto_linear

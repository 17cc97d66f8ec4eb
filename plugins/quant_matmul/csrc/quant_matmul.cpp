// npu_quant_matmul and npu_dynamic_quant on the CPU, and the registration.
#include <custom_pypto/current_isa.h>
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/elementwise.h>
#include <custom_pypto_blocks/linear.h>
#include <custom_pypto_blocks/torch_product.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/quant_kernels.h"
#include "registered.h"

namespace custom_pypto_quant_matmul {
namespace {

using namespace custom_pypto;

// Whether torch's product is exact: without VNNI its instructions saturate sums of two products.
bool is_torch_exact() {
  constexpr int64_t kSize = 64;
  const Tensor most = empty({kSize, kSize}, ScalarType::Char, Device(DeviceType::CPU));
  std::memset(most.mutable_data_ptr(), 127, kSize * kSize);
  const Tensor sums =
      call_op<Tensor>("aten::_int_mm", "", most, torch::stable::transpose(most, 0, 1));
  return *static_cast<const int32_t*>(sums.const_data_ptr()) == 127 * 127 * kSize;
}

// Whether torch's own product takes less time. Measured on a Xeon with AMX, for the instruction set
// of our kernels, with torch limited to the same one: torch is faster from 16 rows on with AMX,
// from some 100 rows on with VNNI of AVX-512, and where a weight must be copied; with VNNI of AVX2
// both take as long.
bool is_torch_faster(int64_t rows, bool copies) {
  static const Isa isa = current_isa();
  static const bool is_served = isa >= Isa::avx512_vnni && isa <= Isa::amx_bf16 && is_torch_exact();
  static const int64_t least_rows = isa == Isa::amx_bf16 ? 16 : 100;
  return is_served && (copies || rows >= least_rows);
}

Out out_of(ScalarType dtype) {
  if (dtype == ScalarType::Char) return Out::int8;
  if (dtype == ScalarType::Int) return Out::int32;
  return dtype == ScalarType::Half ? Out::fp16 : Out::bf16;
}

// Tensors that a task reads, contiguous; it keeps copies alive.
class Columns {
 public:
  const void* data(const Tensor& tensor) {
    kept_.push_back(to_contiguous(tensor));
    return kept_.back().const_data_ptr();
  }
  cpu::ColumnNumbers numbers(const Tensor& tensor) {
    return {data(tensor), element_of(tensor.scalar_type()), tensor.size(0) == 1};
  }

 private:
  std::vector<Tensor> kept_;
};

// The sums by torch, finished by the kernel.
void multiply_by_torch(const cpu::Int8LinearKernel& kernel, const cpu::Int8LinearTask& whole,
                       const Tensor& rows, const Tensor& x2) {
  const Tensor sums = call_op<Tensor>("aten::_int_mm", "", rows, x2);
  const auto* from = static_cast<const int32_t*>(sums.const_data_ptr());
  const int64_t columns = whole.last;
  constexpr int64_t kRows = 32;
  parallel_for(0, divide_up(whole.count, kRows), 1, [&](int64_t begin, int64_t end) {
    cpu::Int8LinearTask task = whole;
    for (int64_t block = begin; block < end; ++block) {
      task.row = block * kRows;
      task.count = std::min(kRows, whole.count - task.row);
      task.out = static_cast<char*>(whole.out) + task.row * columns * kernel.out_bytes;
      for (int64_t column = 0; column < columns; column += cpu::kFinishedColumns) {
        kernel.finish(task, from + task.row * columns + column, columns, column,
                      std::min(cpu::kFinishedColumns, columns - column));
      }
    }
  });
}

Multiply::Outputs multiply_cpu(const Multiply::Arguments& a, const Multiply::CallShape& s) {
  const Tensor out = empty_result(a, s);
  const int64_t count = s.N == 0 ? 0 : out.numel() / s.N;
  if (count == 0) return {out};
  const Tensor rows = torch::stable::view(to_contiguous(a.x1), {count, s.K});
  Columns columns;
  cpu::Int8LinearTask task = {};
  task.rows = rows.const_data_ptr();
  task.count = count;
  task.depth = s.K;
  task.scale = columns.numbers(a.scale);
  if (a.offset.has_value()) task.offset = columns.numbers(*a.offset);
  if (a.bias.has_value()) {
    if (a.bias->scalar_type() == ScalarType::Int) {
      task.integer_bias = static_cast<const int32_t*>(columns.data(*a.bias));
    } else {
      task.bias = columns.numbers(*a.bias);
      task.bias.is_one = false;
    }
  }
  std::vector<float> row_scale;
  if (a.pertoken_scale.has_value()) {
    const auto* given = static_cast<const float*>(columns.data(*a.pertoken_scale));
    for (int64_t row = 0; row < count; ++row) row_scale.push_back(given[row % s.M]);
    task.row_scale = row_scale.data();
  }
  task.last = task.out_stride = s.N;
  task.out = out.mutable_data_ptr();
  const auto& kernel = kernels().linear[static_cast<int>(out_of(out.scalar_type()))];
  Tensor weight = torch::stable::transpose(a.x2, 0, 1);
  if (s.K > 0 && is_torch_faster(count, !weight.is_contiguous())) {
    multiply_by_torch(kernel, task, rows, a.x2);
    return {out};
  }
  if (!weight.is_contiguous()) {
    const Tensor copy = empty(weight.sizes(), weight);
    elementwise([](const void* from, void* to, int64_t size) { std::memcpy(to, from, size); }, copy,
                weight);
    weight = copy;
  }
  task.weight = weight.const_data_ptr();
  multiply_linear(kernel, task);
  return {out};
}

void quantise_cpu(const Quantise::Arguments& a, const Quantise::CallShape& s,
                  const Quantise::Outputs& out) {
  // The fewest numbers that are worth another thread.
  constexpr int64_t kGrain = 1 << 15;
  const Tensor input = to_contiguous(a.input);
  const Tensor smooth = a.smooth_scales.has_value() ? to_contiguous(*a.smooth_scales) : input;
  const auto kernel = kernels().dynamic_quant[float_index(input.scalar_type())];
  const auto* from = static_cast<const char*>(input.const_data_ptr());
  auto* y = static_cast<int8_t*>(out.y.mutable_data_ptr());
  auto* scale = static_cast<float*>(out.scale.mutable_data_ptr());
  const auto bytes = static_cast<int64_t>(input.element_size());
  parallel_for(0, out.scale.numel(), divide_up(kGrain, s.K), [&](int64_t begin, int64_t end) {
    kernel({from + begin * s.K * bytes,
            a.smooth_scales.has_value() ? smooth.const_data_ptr() : nullptr, end - begin, s.K,
            y + begin * s.K, scale + begin});
  });
}

}  // namespace

Tensor empty_result(const Multiply::Arguments& a, const Multiply::CallShape& s) {
  const auto given = a.x1.sizes();
  std::vector<int64_t> sizes(given.begin(), given.end());
  sizes.back() = s.N;
  return empty(sizes, static_cast<ScalarType>(a.output_dtype.value_or(ops::INT8)), a.x1);
}

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Multiply>().impl<&multiply_cpu>("CPU").impl<&multiply_npu>("PrivateUse1");
  plugin.def<Quantise>().impl<&quantise_cpu>("CPU").impl<&Quantise::launch>("PrivateUse1");
}

}  // namespace custom_pypto_quant_matmul

#include "projection.h"

#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/parallel.h>

#include <algorithm>

#include "activations.h"
#include "cpu/kernels.h"
#include "scratch.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention {
namespace {

// Rows of a unit of work: the kernels pack a weight once for each, and threads need several units.
constexpr int64_t kMostUnitRows = 384;
constexpr int64_t kLeastUnitRows = 192;
constexpr int64_t kUnitsOfThread = 4;
// Multiplications that are worth another thread.
constexpr int64_t kUnitWork = 1 << 16;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
T* advance(T* data, int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(data) + bytes;
}

MatmulTask task_of(const ConstRows& x, const Weight& weight, const Rows& out, bool to_fp32) {
  MatmulTask task = {};
  task.a = x.data;
  task.a_row_stride = x.stride;
  task.rows = x.count;
  task.depth = weight.depth;
  task.b = weight.data;
  task.b_row_stride = weight.row_stride;
  task.b_column_stride = weight.column_stride;
  task.b_group = weight.group;
  task.b_group_stride = weight.group_stride;
  task.columns = weight.columns;
  task.out = out.data;
  task.out_row_stride = out.stride;
  task.out_is_fp32 = to_fp32;
  return task;
}

// The rows [first, first + count) of a task.
MatmulTask rows_of(MatmulTask task, Element element, int64_t first, int64_t count) {
  const int64_t bytes = bytes_of(element);
  task.a = advance(task.a, first * task.a_row_stride * bytes);
  task.out = advance(task.out, first * task.out_row_stride * (task.out_is_fp32 ? 4 : bytes));
  task.rows = count;
  return task;
}

// Runs tasks of one shape, `task(i)` for i < tasks: the units of work are their panels of columns,
// and, for many rows, blocks of rows.
template <class Task>
void run(Element element, int64_t tasks, const Task& task) {
  if (tasks == 0) return;
  const MatmulTask shape = task(0);
  if (shape.rows == 0 || shape.columns == 0) return;
  const KernelTable& table = kernels();
  const auto kernel = table.matmul[static_cast<int>(element)];
  const int64_t panels = divide_up(shape.columns, table.matmul_panel);
  const int64_t wanted = divide_up(kUnitsOfThread * custom_pypto::num_threads(), tasks * panels);
  const int64_t blocks = std::clamp(wanted, divide_up(shape.rows, kMostUnitRows),
                                    divide_up(shape.rows, kLeastUnitRows));
  const int64_t rows = divide_up(shape.rows, blocks);
  const int64_t work = rows * std::max<int64_t>(shape.depth, 1) * table.matmul_panel;
  const auto unit = [&](int64_t begin, int64_t end) {
    char* scratch = Scratch::of_thread(table.matmul_scratch);
    while (begin < end) {
      const int64_t panel = begin % panels;
      const int64_t last = std::min(panels, panel + end - begin);
      const int64_t block = begin / panels % blocks;
      const int64_t first_row = std::min(block * rows, shape.rows);
      kernel(rows_of(task(begin / panels / blocks), element, first_row,
                     std::min(rows, shape.rows - first_row)),
             panel, last, scratch);
      begin += last - panel;
    }
  };
  custom_pypto::parallel_for(0, tasks * blocks * panels, divide_up(kUnitWork, work), unit);
}

// Of a matrix whose bytes are declared to be in fractal NZ order.
void check_declared(const Arg& weight) {
  const Tensor& w = weight.tensor();
  const auto need = [&](bool holds, const char* what) {
    check(holds, weight.op(), weight.name(), "must ", what,
          " where 2-D weights are declared to hold fractal NZ bytes (", kNzDeclaration, "), got ",
          w, " with strides ", w.strides(),
          "; take the declaration back if this is a plain matrix");
  };
  need(w.scalar_type() != ScalarType::Float, "be bfloat16 or float16");
  need(w.size(1) % kFractalLanes == 0, "have a multiple of 16 columns");
  need(w.is_contiguous(), "be contiguous");
}

}  // namespace

bool is_declared_nz(const Tensor& weight) {
  return weight.dim() == 2 && weights_are_nz() && !custom_pypto::npu::is_fractal_nz(weight);
}

Weight check_weight(const Arg& weight, const Arg& x, int64_t depth, const char* meaning) {
  weight.rank({2, 3}).same_dtype(x).same_device(x);
  const Tensor& w = weight.tensor();
  if (w.dim() == 2) {
    weight.size(0, depth, meaning);
    const int64_t columns = w.size(1);
    if (CUSTOM_PYPTO_UNLIKELY(is_declared_nz(w))) {
      check_declared(weight);
      return {w.const_data_ptr(),   depth, columns, kFractalLanes, 1, kFractalLanes,
              depth * kFractalLanes};
    }
    return {w.const_data_ptr(),
            depth,
            columns,
            w.stride(0),
            w.stride(1),
            std::max<int64_t>(columns, 1),
            0};
  }
  check(w.scalar_type() != ScalarType::Float, weight.op(), weight.name(),
        "is 3-D, which means fractal NZ order and is for 16-bit dtypes, got ", w,
        "; give a plain 2-D matrix");
  weight.size(2, kFractalLanes, "columns side by side in fractal NZ order");
  weight.size(1, depth, meaning);
  return {w.const_data_ptr(), depth,      w.size(0) * kFractalLanes, w.stride(1), w.stride(2),
          kFractalLanes,      w.stride(0)};
}

void check_columns(const Arg& argument, const Weight& weight, int64_t columns,
                   const char* meaning) {
  check(weight.columns == columns, argument.op(), argument.name(), "must have ", columns,
        " columns (", meaning, "), got ", weight.columns, " in ", argument.tensor().sizes());
}

Weight weight_of_batch(const Tensor& batch, int64_t index) {
  const int64_t bytes = bytes_of(element_of(batch.scalar_type()));
  return {advance(batch.const_data_ptr(), index * batch.stride(0) * bytes),
          batch.size(1),
          batch.size(2),
          batch.stride(1),
          batch.stride(2),
          std::max<int64_t>(batch.size(2), 1),
          0};
}

void project(Element element, const ConstRows& x, const Weight& weight, const Rows& out,
             bool to_fp32) {
  run(element, 1, [&](int64_t) { return task_of(x, weight, out, to_fp32); });
}

void project_batch(Element element, const ConstRows& x, int64_t x_batch_stride, const Tensor& batch,
                   const Rows& out, int64_t out_batch_stride) {
  const int64_t bytes = bytes_of(element);
  run(element, batch.size(0), [&](int64_t n) {
    const ConstRows from = {advance(x.data, n * x_batch_stride * bytes), x.count, x.stride};
    const Rows to = {advance(out.data, n * out_batch_stride * bytes), out.count, out.stride};
    return task_of(from, weight_of_batch(batch, n), to, false);
  });
}

}  // namespace custom_pypto_sparse_attention

// Products with weights, divided among threads.
#include "projection.h"

#include <custom_pypto/parallel.h>
#include <custom_pypto/scratch.h>

#include <algorithm>

#include "activations.h"
#include "cpu/kernels.h"
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
  task.b_group = weight.tile_columns;
  task.b_group_stride = weight.tile_stride;
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
    char* scratch = custom_pypto::Scratch::of_thread(table.matmul_scratch);
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

// A matrix with these strides, all of it one tile.
Weight matrix_of(const void* data, int64_t depth, int64_t columns, int64_t row_stride,
                 int64_t column_stride) {
  const int64_t whole = std::max<int64_t>(columns, 1);
  return {data, depth, columns, row_stride, column_stride, whole, 0};
}

}  // namespace

Weight weight_of(const Tensor& weight) {
  const void* data = weight.const_data_ptr();
  if (weight.dim() == 3) {
    return {data,
            weight.size(1),
            weight.size(0) * kTileColumns,
            weight.stride(1),
            weight.stride(2),
            kTileColumns,
            weight.stride(0)};
  }
  const int64_t depth = weight.size(0);
  const int64_t columns = weight.size(1);
  if (CUSTOM_PYPTO_UNLIKELY(is_declared_nz(weight))) {
    return {data, depth, columns, kTileColumns, 1, kTileColumns, depth * kTileColumns};
  }
  return matrix_of(data, depth, columns, weight.stride(0), weight.stride(1));
}

Weight weight_of_batch(const Tensor& batch, int64_t index) {
  const int64_t bytes = bytes_of(element_of(batch.scalar_type()));
  return matrix_of(advance(batch.const_data_ptr(), index * batch.stride(0) * bytes), batch.size(1),
                   batch.size(2), batch.stride(1), batch.stride(2));
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

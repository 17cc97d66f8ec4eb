// Weights on the CPU, and the products with them, divided among threads.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/cpu/matmul_task.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/scratch.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// A weight [depth, columns], read where it is: a matrix with any strides is one tile, a weight in
// fractal NZ order has tiles of 16 columns. Strides count elements; see MatmulTask.
struct Weight {
  const void* data;
  int64_t depth;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;
  int64_t tile_columns;
  int64_t tile_stride;
};

// Rows of activations: `count` rows, `stride` elements apart.
template <class Data>
struct RowsOf {
  Data* data;
  int64_t count;
  int64_t stride;
};
using Rows = RowsOf<void>;
using ConstRows = RowsOf<const void>;
inline ConstRows as_const(const Rows& rows) { return {rows.data, rows.count, rows.stride}; }

namespace detail {

// Rows of a unit of work: the kernels pack a weight once for each unit, and threads need several.
inline constexpr int64_t kMostUnitRows = 384;
inline constexpr int64_t kLeastUnitRows = 192;
inline constexpr int64_t kUnitsOfThread = 4;
// The fewest multiplications that are worth another thread.
inline constexpr int64_t kUnitWork = 1 << 16;

template <class T>
T* advance(T* data, int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(data) + bytes;
}

inline cpu::MatmulTask task_of(const ConstRows& x, const Weight& weight, const Rows& out,
                               bool to_fp32) {
  cpu::MatmulTask task = {};
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
inline cpu::MatmulTask rows_of(cpu::MatmulTask task, const cpu::MatmulKernel& kernel, int64_t first,
                               int64_t count) {
  const int64_t out_bytes = task.out_is_fp32 ? 4 : kernel.out_bytes;
  task.a = advance(task.a, first * task.a_row_stride * kernel.element);
  task.out = advance(task.out, first * task.out_row_stride * out_bytes);
  task.rows = count;
  return task;
}

// Runs tasks of one shape, `task(i)` for i < tasks: the units of work are their panels of columns,
// and, for many rows, blocks of rows.
template <class Task>
void multiply(const cpu::MatmulKernel& kernel, int64_t tasks, const Task& task) {
  if (tasks == 0) return;
  const cpu::MatmulTask shape = task(0);
  if (shape.rows == 0 || shape.columns == 0) return;
  const int64_t panels = divide_up(shape.columns, kernel.panel);
  const int64_t wanted = divide_up(kUnitsOfThread * num_threads(), tasks * panels);
  const int64_t blocks = std::clamp(wanted, divide_up(shape.rows, kMostUnitRows),
                                    divide_up(shape.rows, kLeastUnitRows));
  const int64_t rows = divide_up(shape.rows, blocks);
  const int64_t work = rows * std::max<int64_t>(shape.depth, 1) * kernel.panel;
  const auto unit = [&](int64_t begin, int64_t end) {
    char* scratch = Scratch::of_thread(kernel.scratch);
    while (begin < end) {
      const int64_t panel = begin % panels;
      const int64_t last = std::min(panels, panel + end - begin);
      const int64_t block = begin / panels % blocks;
      const int64_t first_row = std::min(block * rows, shape.rows);
      kernel.run(rows_of(task(begin / panels / blocks), kernel, first_row,
                         std::min(rows, shape.rows - first_row)),
                 panel, last, scratch);
      begin += last - panel;
    }
  };
  parallel_for(0, tasks * blocks * panels, divide_up(kUnitWork, work), unit);
}

}  // namespace detail

// A matrix with these strides, all of it one tile.
inline Weight matrix_of(const void* data, int64_t depth, int64_t columns, int64_t row_stride,
                        int64_t column_stride) {
  const int64_t whole = std::max<int64_t>(columns, 1);
  return {data, depth, columns, row_stride, column_stride, whole, 0};
}

// A weight from a matrix [depth, columns].
inline Weight weight_of_matrix(const void* contiguous, int64_t depth, int64_t columns) {
  return matrix_of(contiguous, depth, columns, columns, 1);
}
inline Weight weight_of_matrix(const Tensor& matrix) {
  return matrix_of(matrix.const_data_ptr(), matrix.size(0), matrix.size(1), matrix.stride(0),
                   matrix.stride(1));
}

// One matrix of a contiguous or strided batch [batch, depth, columns].
inline Weight weight_of_batch(const Tensor& batch, int64_t index) {
  const int64_t offset = index * batch.stride(0) * static_cast<int64_t>(batch.element_size());
  return matrix_of(detail::advance(batch.const_data_ptr(), offset), batch.size(1), batch.size(2),
                   batch.stride(1), batch.stride(2));
}

// out = x @ weight, in the dtypes of `kernel` (or rounded to fp32 when `to_fp32`). In parallel; the
// same bits for any number of threads.
inline void project(const cpu::MatmulKernel& kernel, const ConstRows& x, const Weight& weight,
                    const Rows& out, bool to_fp32 = false) {
  detail::multiply(kernel, 1, [&](int64_t) { return detail::task_of(x, weight, out, to_fp32); });
}

// As `project`, on the calling thread only, which may run within a parallel_for.
inline void project_here(const cpu::MatmulKernel& kernel, const ConstRows& x, const Weight& weight,
                         const Rows& out) {
  kernel.run(detail::task_of(x, weight, out, false), 0, divide_up(weight.columns, kernel.panel),
             Scratch::of_thread(kernel.scratch));
}

// For each n of `batch` [N, depth, columns]: out[:, n] = x[:, n] @ batch[n], where element n of a
// row of x (or out) begins n * x_batch_stride (n * out_batch_stride) elements into it.
inline void project_batch(const cpu::MatmulKernel& kernel, const ConstRows& x,
                          int64_t x_batch_stride, const Tensor& batch, const Rows& out,
                          int64_t out_batch_stride) {
  detail::multiply(kernel, batch.size(0), [&](int64_t n) {
    const ConstRows from = {detail::advance(x.data, n * x_batch_stride * kernel.element), x.count,
                            x.stride};
    const Rows to = {detail::advance(out.data, n * out_batch_stride * kernel.out_bytes), out.count,
                     out.stride};
    return detail::task_of(from, weight_of_batch(batch, n), to, false);
  });
}

CUSTOM_PYPTO_NAMESPACE_END

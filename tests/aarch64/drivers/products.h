// Matrix products, called as the ops call them.
#pragma once

#include <custom_pypto_blocks/cpu/matmul_task.h>

#include <algorithm>

#include "wire.h"

namespace driver {

inline constexpr int64_t kMatmul = 1;

// Answers a request for a product by the kernel `kernel_of(element)`, `panels` panels at a time.
template <class KernelOf>
void multiply(const KernelOf& kernel_of) {
  const custom_pypto::cpu::MatmulKernel& kernel = kernel_of(read_integer());
  const int64_t panels_at_a_time = read_integer();
  custom_pypto::cpu::MatmulTask task{};
  const Bytes a = read_bytes();
  task.a = a.as() + read_integer() * kernel.element;
  task.a_row_stride = read_integer();
  task.rows = read_integer();
  task.depth = read_integer();
  const Bytes b = read_bytes();
  task.b = b.as() + read_integer() * kernel.element;
  task.b_row_stride = read_integer();
  task.b_column_stride = read_integer();
  task.b_group = read_integer();
  task.b_group_stride = read_integer();
  task.columns = read_integer();
  task.out_is_fp32 = read_integer() != 0;
  const Bytes out(task.rows * task.columns * (task.out_is_fp32 ? 4 : kernel.out_bytes));
  task.out = out.as();
  task.out_row_stride = task.columns;
  const Bytes scratch(kernel.scratch);
  const int64_t panels = (task.columns + kernel.panel - 1) / kernel.panel;
  for (int64_t first = 0; first < panels; first += panels_at_a_time) {
    kernel.run(task, first, std::min(first + panels_at_a_time, panels), scratch.as());
  }
  write_bytes(out.as(), out.size());
}

}  // namespace driver

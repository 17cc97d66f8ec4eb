// Products with the weights of linear layers, divided among threads.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/cpu/linear_task.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/scratch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The rows of a task that are multiplied together: they stay in the L2 cache while weights are
// read.
template <class Kernel, class Task>
int64_t linear_block(const Kernel& kernel, const Task& task) {
  // Bytes of these rows.
  static const int64_t bytes_of_rows =
      std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 1 << 20) / 4 * 3;
  // Blocks have about as many rows: each reads all weights.
  const int64_t tiles = divide_up(task.count, kernel.tile_rows);
  Task one = task, two = task;
  one.count = 1;
  two.count = 2;
  const int64_t most =
      bytes_of_rows / (kernel.tile_rows * (kernel.scratch(two) - kernel.scratch(one)));
  const int64_t blocks = divide_up(tiles, std::max<int64_t>(most, 1));
  return std::min(task.count, divide_up(tiles, blocks) * kernel.tile_rows);
}

template <class Kernel, class Task>
const Kernel& kernel_for(const Kernel& kernel, const Task&) {
  return kernel;
}
inline const cpu::LinearKernel& kernel_for(const cpu::LinearKernel& kernel,
                                           const cpu::LinearTask& task) {
  return kernel.takes == nullptr || kernel.takes(task) ? kernel : *kernel.other;
}

// Runs tasks without scratch, each with rows, in one parallel region. Threads get equal shares of
// the work of all. The same bits for any number of threads.
template <class Kernel, class Task>
void multiply_linear(const Kernel& of_all, const std::vector<Task>& tasks) {
  // The least work of a thread, in multiplications. Reading a weight takes as long as four.
  constexpr int64_t kThreadWork = 1 << 18, kReading = 4;
  // Weights of a unit of work: several tiles.
  constexpr int64_t kUnitWeights = 16;
  struct Part {
    const Task& task;
    const Kernel& kernel;
    int64_t units, work_of_unit;
  };
  std::vector<Part> parts;
  int64_t work = 0, products = 0, bytes = 0;
  for (const Task& task : tasks) {
    const Kernel& kernel = kernel_for(of_all, task);
    const int64_t units = divide_up(task.last - task.first, kUnitWeights);
    const int64_t numbers = kUnitWeights * std::max<int64_t>(task.depth, 1);
    // Shares are equal if reading a weight takes as long as multiplying it by a tile's rows.
    parts.push_back({task, kernel, units, numbers * (task.count + kernel.tile_rows)});
    work += units * parts.back().work_of_unit;
    products += units * numbers * (task.count + kReading);
    Task part = task;
    part.count = linear_block(kernel, task);
    bytes = std::max(bytes, kernel.scratch(part));
  }
  parallel_for(0, work, work / (products / kThreadWork + 1) + 1, [&](int64_t begin, int64_t end) {
    char* const scratch = Scratch::of_thread(bytes);
    int64_t before = 0;  // the work of the parts before
    for (const auto& [whole, kernel, units, each] : parts) {
      // The units that begin in [begin, end).
      const auto unit_at = [&, most = units, each = each](int64_t at) {
        return std::min(most, divide_up(std::max<int64_t>(at - before, 0), each));
      };
      const int64_t first = unit_at(begin), last = unit_at(end);
      before += units * each;
      if (first == last) continue;
      const int64_t block = linear_block(kernel, whole);
      Task task = whole;
      task.scratch = scratch;
      task.first = whole.first + first * kUnitWeights;
      task.last = std::min(whole.last, whole.first + last * kUnitWeights);
      for (int64_t row = 0; row < whole.count; row += block) {
        task.row = row;
        task.rows = static_cast<const char*>(whole.rows) + row * whole.depth * kernel.element;
        task.out = static_cast<char*>(whole.out) + row * whole.out_stride * kernel.out_bytes;
        task.count = std::min(block, whole.count - row);
        kernel.run(task);
      }
    }
  });
}

template <class Kernel, class Task>
void multiply_linear(const Kernel& kernel, const Task& task) {
  if (task.count > 0) multiply_linear(kernel, std::vector<Task>{task});
}

CUSTOM_PYPTO_NAMESPACE_END

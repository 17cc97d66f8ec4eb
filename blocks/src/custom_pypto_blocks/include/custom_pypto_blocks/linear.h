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

// Runs tasks without scratch, each with rows, in one parallel region. Threads get equal shares of
// the work of all. The same bits for any number of threads.
template <class Kernel, class Task>
void multiply_linear(const Kernel& kernel, const std::vector<Task>& tasks) {
  // The least work of a thread, in multiplications.
  constexpr int64_t kThreadWork = 1 << 18;
  // Weights of a unit of work: several tiles.
  constexpr int64_t kUnitWeights = 16;
  // Reading a weight takes about as long as multiplying it by the rows of a tile.
  const auto work_of_unit = [&](const Task& task) {
    return kUnitWeights * std::max<int64_t>(task.depth, 1) * (task.count + kernel.tile_rows);
  };
  const auto units_of = [](const Task& task) {
    return divide_up(task.last - task.first, kUnitWeights);
  };
  int64_t work = 0;
  int64_t bytes = 0;
  for (const Task& task : tasks) {
    work += units_of(task) * work_of_unit(task);
    Task part = task;
    part.count = linear_block(kernel, task);
    bytes = std::max(bytes, kernel.scratch(part));
  }
  parallel_for(0, work, kThreadWork, [&](int64_t begin, int64_t end) {
    char* const scratch = Scratch::of_thread(bytes);
    int64_t before = 0;  // the work of the tasks before
    for (const Task& whole : tasks) {
      // The units that begin in [begin, end).
      const int64_t each = work_of_unit(whole);
      const int64_t units = units_of(whole);
      const auto unit_at = [&](int64_t at) {
        return std::min(units, divide_up(std::max<int64_t>(at - before, 0), each));
      };
      const int64_t first = unit_at(begin);
      const int64_t last = unit_at(end);
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

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

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Runs a task without scratch, in parallel. The same bits for any number of threads.
template <class Kernel, class Task>
void multiply_linear(const Kernel& kernel, const Task& whole) {
  // The fewest multiplications that are worth another thread.
  constexpr int64_t kUnitWork = 1 << 16;
  // Weights of a unit of work: several tiles.
  constexpr int64_t kUnitWeights = 16;
  // Bytes of rows that stay in the L2 cache while weights are read.
  static const int64_t bytes_of_rows =
      std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 1 << 20) / 4 * 3;
  if (whole.count == 0) return;
  // A multiple of every tile's rows. Blocks have about as many rows: each reads all weights.
  constexpr int64_t kTiles = 6;
  const int64_t tiles = divide_up(whole.count, kTiles);
  Task one = whole, two = whole;
  one.count = 1;
  two.count = 2;
  const int64_t most = bytes_of_rows / (kTiles * (kernel.scratch(two) - kernel.scratch(one)));
  const int64_t blocks = divide_up(tiles, std::max<int64_t>(most, 1));
  const int64_t block = std::min(whole.count, divide_up(tiles, blocks) * kTiles);
  const int64_t work = kUnitWeights * std::max<int64_t>(whole.depth, 1) * block;
  const int64_t units = divide_up(whole.last - whole.first, kUnitWeights);
  parallel_for(0, units, divide_up(kUnitWork, work), [&](int64_t begin, int64_t end) {
    Task task = whole;
    task.count = block;
    task.scratch = Scratch::of_thread(kernel.scratch(task));
    task.first = whole.first + begin * kUnitWeights;
    task.last = std::min(whole.last, whole.first + end * kUnitWeights);
    for (int64_t row = 0; row < whole.count; row += block) {
      task.row = row;
      task.rows = static_cast<const char*>(whole.rows) + row * whole.depth * kernel.element;
      task.out = static_cast<char*>(whole.out) + row * whole.out_stride * kernel.out_bytes;
      task.count = std::min(block, whole.count - row);
      kernel.run(task);
    }
  });
}

CUSTOM_PYPTO_NAMESPACE_END

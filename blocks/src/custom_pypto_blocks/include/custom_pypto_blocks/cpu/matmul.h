// Panels of columns of a matrix product; b is packed block by block, a is read in place.
#pragma once

#include "matmul_task.h"
#include "operands.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Prefetches rows of `bytes` bytes, line by line and row by row, spread over `calls` calls of
// advance (0: no prefetch). Into the L2 cache: a block is larger than the L1 cache.
class BlockPrefetcher {
 public:
  void begin(const void* first, int64_t rows, int64_t stride, int64_t bytes, int64_t calls) {
    row_ = static_cast<const char*>(first);
    rows_ = rows;
    stride_ = stride;
    bytes_ = bytes;
    at_ = 0;
    lines_per_call_ = calls == 0 ? 0 : ((bytes + kLine - 1) / kLine * rows + calls - 1) / calls;
  }

  inline void advance() {
    if (rows_ == 0) return;
    for (int64_t line = 0; line < lines_per_call_; ++line) {
      __builtin_prefetch(row_ + at_, 0, kIntoL2);
      at_ += kLine;
      if (at_ < bytes_) continue;
      at_ = 0;
      row_ += stride_;
      if (--rows_ == 0) return;
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int kIntoL2 = 2;  // of __builtin_prefetch's 0 to 3

  const char* row_ = nullptr;
  int64_t rows_ = 0;
  int64_t stride_ = 0;
  int64_t bytes_ = 0;
  int64_t at_ = 0;
  int64_t lines_per_call_ = 0;
};

// How a product is cut into blocks. The order of additions within a row is the same for any cut.
//
// While one block of b is multiplied, the next one is prefetched into the L2 cache, one contiguous
// run at a time. Each run is on a page of its own, so runs should be long: a block of contiguous
// rows of b has many columns, one of contiguous columns, or of groups of columns, many steps.
struct MatmulBlocks {
  int64_t panels;  // side by side
  int64_t steps;
  int64_t rows;
};
inline constexpr MatmulBlocks kFewRows = {32, 16, 64};
// The more rows, the more steps a block of b may have: it is used for longer, and the sums are
// loaded and stored less often.
inline constexpr MatmulBlocks kMoreRows = {8, 64, 128};
inline constexpr MatmulBlocks kManyRows = {4, 128, 384};

// A block of int8 numbers is multiplied faster: from this many rows on it should be used longer.
inline constexpr int64_t kFewInt8Rows = 8;

template <class Element>
inline const MatmulBlocks& blocks_for(const MatmulTask& task) {
  const int64_t few = sizeof(Element) == 1 ? kFewInt8Rows : kFewRows.rows;
  const bool contiguous_rows = task.b_column_stride == 1 && task.b_group >= task.columns;
  if (contiguous_rows && task.rows <= few) return kFewRows;
  return task.rows <= kMoreRows.rows ? kMoreRows : kManyRows;
}

template <class Element>
class MatmulPanels {
 public:
  // Panels [first, last).
  static void run(const MatmulTask& task, int64_t first, int64_t last, char* scratch) {
    MatmulPanels product(task, scratch);
    for (; first < last; first += product.blocks_.panels) {
      product.run(first, least(product.blocks_.panels, last - first));
    }
  }

  static constexpr int64_t scratch_bytes() {
    return greater(bytes(kFewRows), greater(bytes(kMoreRows), bytes(kManyRows)));
  }

 private:
  using Operand = typename OperandOf<Element>::Type;
  using Sum = typename OperandOf<Element>::Sum;
  using Sums = typename OperandOf<Element>::Sums;
  using Out = typename OperandOf<Element>::Out;
  using Step = Steps<Element, Operand>;
  static constexpr int64_t kDepth = Operand::kDepth;
  static constexpr int64_t kStepBytes = Operand::kStepBytes;

  static constexpr int64_t bytes(const MatmulBlocks& blocks) {
    return (kPanel + blocks.rows) * blocks.steps * kStepBytes +
           blocks.panels * blocks.rows * kPanel * 4;
  }

  MatmulPanels(const MatmulTask& task, char* scratch)
      : task_(task), blocks_(blocks_for<Element>(task)), in_place_(Step::in_place(task.depth)) {
    Arena arena(scratch);
    packed_ = arena.allocate(blocks_.steps * kPanel * kStepBytes);
    sums_ = arena.allocate<Sum>(blocks_.panels * blocks_.rows * kPanel * 4);
    row_steps_ = arena.allocate(blocks_.rows * blocks_.steps * kStepBytes);
  }

  void run(int64_t first, int64_t panels) {
    const int64_t steps = steps_of<Operand>(task_.depth);
    const int64_t column = first * kPanel;
    const int64_t columns = least(panels * kPanel, task_.columns - column);
    for (int64_t row = 0; row < task_.rows; row += blocks_.rows) {
      const int64_t rows = least(blocks_.rows, task_.rows - row);
      clear_sums(row, rows, panels);
      for (int64_t step = 0; step < steps; step += blocks_.steps) {
        const int64_t count = least(blocks_.steps, steps - step);
        load_rows(row, rows, step, count);
        const int64_t calls = panels * divide_up(rows, kRows) * (count / kPrefetchSteps<Operand>);
        const int64_t next = column + columns;
        if (step + count < steps) {
          prefetch_block(column, columns, step + count, calls);
        } else if (next < task_.columns) {
          prefetch_block(next, least(columns, task_.columns - next), 0, calls);
        } else {  // in a batch, the next matrix follows in memory
          prefetch_block(0, least(blocks_.panels * kPanel, task_.columns), steps, calls);
        }
        for (int64_t panel = 0; panel < panels; ++panel) {
          pack_columns(column + panel * kPanel, least(kPanel, columns - panel * kPanel), step,
                       count);
          multiply(panel, rows, count);
        }
      }
      write(row, rows, column, columns);
    }
  }

  void clear_sums(int64_t row, int64_t rows, int64_t panels) {
    __builtin_memset(sums_, 0, static_cast<size_t>(panels * rows * kPanel) * 4);
    if constexpr (kLaneOffset<Element> != 0) {
      for (int64_t r = 0; r < rows; ++r) {
        const Element* a = static_cast<const Element*>(task_.a) + (row + r) * task_.a_row_stride;
        Sum start = 0;
        for (int64_t k = 0; k < task_.depth; ++k) start -= a[k];
        for (int64_t panel = 0; panel < panels; ++panel) {
          Sum* sums = sums_ + (panel * rows + r) * kPanel;
          for (int64_t j = 0; j < kPanel; ++j) sums[j] = start * kLaneOffset<Element>;
        }
      }
    }
  }

  const Element* b_at(int64_t k, int64_t column) const {
    return static_cast<const Element*>(task_.b) + k * task_.b_row_stride +
           (column / task_.b_group) * task_.b_group_stride +
           (column % task_.b_group) * task_.b_column_stride;
  }

  // Starts the prefetch, in `calls` parts, of the block of b that begins at `step`.
  void prefetch_block(int64_t column, int64_t columns, int64_t step, int64_t calls) {
    const Element* first = b_at(step * kDepth, column);
    const auto size = static_cast<int64_t>(sizeof(Element));
    const int64_t row_stride = task_.b_row_stride * size;
    const int64_t depth = blocks_.steps * kDepth;
    if (task_.b_column_stride != 1) {
      // With gaps in both directions there are no runs.
      const int64_t runs = task_.b_row_stride == 1 ? columns : 0;
      prefetcher_.begin(first, runs, task_.b_column_stride * size, depth * row_stride, calls);
    } else if (task_.b_group < task_.columns) {
      prefetcher_.begin(first, divide_up(columns, task_.b_group), task_.b_group_stride * size,
                        depth * row_stride, calls);
    } else {
      prefetcher_.begin(first, depth, row_stride, columns * size, calls);
    }
  }

  // Steps [step, step + count) of a panel of b's columns: [step][kPanel].
  void pack_columns(int64_t column, int64_t columns, int64_t step, int64_t count) {
    for (int64_t j = 0; j < columns;) {
      const int64_t run = least(columns - j, task_.b_group - (column + j) % task_.b_group);
      pack_run(b_at(step * kDepth, column + j), run, task_.depth - step * kDepth, count,
               packed_ + j * kStepBytes);
      j += run;
    }
    if (columns == kPanel) return;
    for (int64_t s = 0; s < count; ++s) {
      Step::zeros(kPanel - columns, packed_ + (s * kPanel + columns) * kStepBytes);
    }
  }

  // `count` steps of columns of one group; `depth` rows of b are left.
  void pack_run(const Element* from, int64_t columns, int64_t depth, int64_t count, char* out) {
    for (int64_t s = 0; s < count;
         ++s, out += kPanel * kStepBytes, from += kDepth * task_.b_row_stride) {
      const Element* rows[kDepth];
      for (int64_t d = 0; d < kDepth; ++d) {
        rows[d] = s * kDepth + d < depth ? from + d * task_.b_row_stride : nullptr;
      }
      Step::from_rows(rows, task_.b_column_stride, columns, out);
    }
  }

  // Points row_pointers_ to the same steps of a's rows, in place where that is possible.
  void load_rows(int64_t row, int64_t rows, int64_t step, int64_t count) {
    const int64_t k = step * kDepth;
    const int64_t elements = least(count * kDepth, task_.depth - k);
    for (int64_t r = 0; r < rows; ++r) {
      const Element* source =
          static_cast<const Element*>(task_.a) + (row + r) * task_.a_row_stride + k;
      if (in_place_) {
        row_pointers_[r] = reinterpret_cast<const char*>(source);
      } else {
        char* steps = row_steps_ + r * blocks_.steps * kStepBytes;
        Step::from_row(source, elements, steps);
        row_pointers_[r] = steps;
      }
    }
  }

  void multiply(int64_t panel, int64_t rows, int64_t steps) {
    Sum* sums = sums_ + panel * rows * kPanel;
    for (int64_t r = 0; r < rows; r += kRows) {
      multiply_rows<kRows>(least(kRows, rows - r), row_pointers_ + r, steps, sums + r * kPanel);
    }
  }

  template <int kCount>
  void multiply_rows(int64_t count, const char* const* rows, int64_t steps, Sum* sums) {
    if constexpr (kCount > 1) {
      if (count < kCount) return multiply_rows<kCount - 1>(count, rows, steps, sums);
    }
    Sums c[kCount][kVectors];
    load_tile(c, sums, kPanel);
    multiply_tile<Operand, kCount, kVectors>(c, rows, packed_, kPanel * kStepBytes, steps,
                                             PrefetchBy<BlockPrefetcher>{&prefetcher_});
    store_tile(c, sums, kPanel);
  }

  void write(int64_t row, int64_t rows, int64_t column, int64_t columns) {
    for (int64_t j = 0; j < columns; j += kPanel) {
      const Sum* sums = sums_ + (j / kPanel) * rows * kPanel;
      const int64_t count = least(kPanel, columns - j);
      for (int64_t r = 0; r < rows; ++r, sums += kPanel) {
        const int64_t at = (row + r) * task_.out_row_stride + column + j;
        write_row(sums, count, at);
      }
    }
  }

  void write_row(const Sum* sums, int64_t count, int64_t at) {
    if constexpr (sizeof(Sum) == sizeof(Out)) {  // nothing to round
      __builtin_memcpy(static_cast<Out*>(task_.out) + at, sums, static_cast<size_t>(count) * 4);
    } else if (task_.out_is_fp32) {
      narrow(sums, count, static_cast<float*>(task_.out) + at);
    } else {
      narrow(sums, count, static_cast<Out*>(task_.out) + at);
    }
  }

  const MatmulTask& task_;
  const MatmulBlocks& blocks_;
  bool in_place_;
  BlockPrefetcher prefetcher_;
  char* packed_;
  Sum* sums_;
  char* row_steps_;
  const char* row_pointers_[kManyRows.rows];
};

template <class Element>
inline constexpr MatmulKernel kMatmul = {&MatmulPanels<Element>::run, kPanel,
                                         MatmulPanels<Element>::scratch_bytes(), sizeof(Element),
                                         sizeof(typename OperandOf<Element>::Out)};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

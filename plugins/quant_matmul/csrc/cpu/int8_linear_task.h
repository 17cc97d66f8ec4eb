// Products with int8 weights of linear layers: kernels that are compiled for each instruction set,
// as their callers name them.
#pragma once

#include <custom_pypto_blocks/cpu/element.h>
#include <stdint.h>

namespace custom_pypto::cpu {

// A number for each column, or one for all; none where data is null.
struct ColumnNumbers {
  const void* data;
  Element element;
  bool is_one;
};

// out[r, c] = (sum + integer_bias[c]) * scale[c] * row_scale[r] + bias[c] + offset[c], rounded
// once, for the columns [first, last) of `out`. The sum is that over k of rows[r, k] * weight[c,
// k], as int32, which is exact for a depth below 2^17. What is null is left out; for an out of
// int32 all but the integer bias. Rows and weights are contiguous.
struct Int8LinearTask {
  const void* rows;
  int64_t count;
  int64_t depth;
  const void* weight;
  const int32_t* integer_bias;
  ColumnNumbers scale;
  const float* row_scale;
  ColumnNumbers bias;
  ColumnNumbers offset;
  int64_t first;
  int64_t last;
  void* out;
  int64_t out_stride;
  int64_t row;    // the place of the first row in row_scale
  char* scratch;  // scratch(task) bytes, aligned as Scratch is
};

// Columns that are finished together.
inline constexpr int64_t kFinishedColumns = 16;

// The kernel for one dtype of out. int8_linear.h defines an instruction set's kernels.
struct Int8LinearKernel {
  void (*run)(const Int8LinearTask& task);
  int64_t (*scratch)(const Int8LinearTask& task);
  // From sums that are known: those of row r and `columns` columns from `column` on begin at
  // sums[r * stride]. There are at most kFinishedColumns.
  void (*finish)(const Int8LinearTask& task, const int32_t* sums, int64_t stride, int64_t column,
                 int64_t columns);
  int64_t element;        // bytes of a number of rows
  int64_t out_bytes;      // of a number of out
  int64_t tile_rows = 6;  // a multiple of every tile's rows
};

}  // namespace custom_pypto::cpu

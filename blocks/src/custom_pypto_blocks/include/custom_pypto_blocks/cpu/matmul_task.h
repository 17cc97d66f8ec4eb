// Matrix products of kernels that are compiled for each instruction set, as their callers name
// them.
#pragma once

#include <stdint.h>

namespace custom_pypto::cpu {

// out[rows, columns] = a[rows, depth] @ b[depth, columns]: accumulated in fp32 and rounded once,
// or, of int8, exactly in int32. Strides count elements. Rows of `a` and `out` are contiguous; b's
// element (k, j) is at
//   k * b_row_stride + (j / b_group) * b_group_stride + (j % b_group) * b_column_stride
// which covers a matrix with any strides (one group) and fractal NZ order (groups of 16).
struct MatmulTask {
  const void* a;
  int64_t a_row_stride;
  int64_t rows;
  int64_t depth;
  const void* b;
  int64_t b_row_stride;
  int64_t b_column_stride;
  int64_t b_group;
  int64_t b_group_stride;
  int64_t columns;
  void* out;
  int64_t out_row_stride;
  bool out_is_fp32;  // else of the same dtype as a; of int8 it is always int32
};

// The kernel for one dtype of `a` and `b`. matmul.h defines an instruction set's kernels.
struct MatmulKernel {
  // Computes the panels [first, last) of `panel` columns each. Panels are independent. Scratch is
  // aligned as Scratch of custom_pypto_blocks/scratch.h is.
  void (*run)(const MatmulTask& task, int64_t first, int64_t last, char* scratch);
  int64_t panel;
  int64_t scratch;    // bytes
  int64_t element;    // bytes of an element of a and b
  int64_t out_bytes;  // of an element of out, unless out_is_fp32
};

}  // namespace custom_pypto::cpu
